"""Texts and a query in, ranked hits out.

Pure and in memory: no storage, no network, nothing of LiveKit. Vectors come from an `Embedder`; without
one the same `Index` works on full text alone.

    embedder = load_embedder()                      # None when no model is installed
    index = Index()
    index.add([Passage("m1", "Caller lives in Porto.", "memory", at, vector)])
    index.search("where is my home", query_vector=query_vector, limit=5, threshold=0.1)

`windows` cuts stored text into passages; `wording` puts them into the form that is embedded, `words` cuts them
into terms, `dates` finds the dates that are named, `fulltext` scores terms, `embedding` is the model, `index` blends
the two, `conversation` judges turns by what stands around them, `excerpts` makes hits of neighbouring ones;
`sameness` says when two texts are one fact.
"""

from .conversation import Place
from .embedding import Embedder, load_embedder
from .index import Index, Kind, Passage, Ranked
from .sameness import exact_form, norm_form
from .windows import in_context, turns, windows

__all__ = [
    "Embedder",
    "Index",
    "Kind",
    "Passage",
    "Place",
    "Ranked",
    "exact_form",
    "in_context",
    "load_embedder",
    "norm_form",
    "turns",
    "windows",
]
