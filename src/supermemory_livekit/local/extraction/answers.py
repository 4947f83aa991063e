"""An agent's question, by which a caller's short answer is understood."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .known import declarative
from .sentences import is_question, normal, sentences

__all__ = ["Asked", "question_of"]

_LONGEST = 160
_SERVICE = re.compile(
    r"\b(?:would you (?:like|prefer|mind)(?! to (?:eat|drink|order))|shall (?:i|we)|should i|"
    r"may i(?! have your| ask your| take your| get your)|"
    r"can i(?! have your| get your| take your)|could i(?! have your| get your| take your)|do you want|"
    r"did (?:that|you)|"
    r"is there anything|anything else|does that|is that (?:okay|ok|all|fine|alright)|can you (?:hear|see|"
    r"hold|repeat|spell)|"
    r"are you (?:still )?(?:there|here|on the line|with me|ready|sure|okay)\b|how are you|how can i help|"
    r"what can i do|how may i|"
    r"are you calling|ready|"
    r"have you (?:tried|got a pen)|is now a good time|how (?:do|did) you (?:like|hear|find)|okay\?|isn't it|"
    r"and you|huh|right\?|what do you think|how(?:'s| is| are) (?:it|things|the|your)|"
    r"(?:was|womit|wie) kann ich|kann ich (?:ihnen )?(?:sonst |noch )*(?:etwas |was )?(?:für sie|helfen)|sonst noch|"
    r"sind sie (?:noch )?(?:da|dran|bereit)|hören sie mich|soll ich|möchten sie,? dass|wie geht|"
    r"(?:en qué|cómo) (?:le |te |la |lo )?puedo|puedo ayudar|algo más|alguna otra cosa|sigue ahí|me oye|qué tal|"
    r"cómo est[áa]s?|quiere que|"
    r"(?:que|comment) (?:puis-je|je peux)|puis-je vous aider|autre chose|vous êtes (?:toujours )?là|m'entendez|"
    r"comment (?:allez|ça va)|voulez-vous que|"
    r"(?:em que|como) (?:o |a |lhe )?posso|posso ajudar|mais alguma coisa|ainda está aí|ouve-me|como (?:está|vai)|"
    r"quer que|"
    r"(?:come|in cosa) posso|posso (?:aiutar|fare)\w*|altro\?|qualcos'altro|ancora lì|mi sente|come (?:sta|va)|"
    r"vuole che|"
    r"(?:waarmee|wat|hoe) kan ik|kan ik (?:u |je )?(?:nog |ergens )?(?:mee |anders )?helpen|nog iets|bent u er nog|"
    r"hoort u mij|hoe gaat|zal ik)\b|\baltro ?\?",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"^(?:(?:and|so|oh|well|und|y|et|e|en|also|dann|entonces|alors|então|allora|dus|[\w' ]{1,25},)[ ,]+)*"
    r"(?:how (?!many|much|old|long|often|tall|should i|do you (?:take|spell|pay|like your|want))|"
    r"(?:any|was there any|did you have any|have you had any) (?:trouble|problems?|news|difficult\w+|luck|visitors|"
    r"plans)|"
    r"what(?:'s| is| are| was| did| has| have| happened)\b.*\b(?:happen\w*|news|up to|been doing|you do (?:today|"
    r"yesterday)|"
    r"(?:doctor|dentist) say|on your mind|talk about|wrong|going on)|what happened|"
    r"(?:did|have) you (?:enjoy|have a|manage|get (?:your|the|out)|sleep|been (?:out|busy)|had any)|"
    r"wie (?!viel|alt|lange|oft|heißen|ist ihr|lautet|groß|schreib)|gab es|was (?:haben sie|hast du) (?:heute|gestern)|"
    r"c[óo]mo (?!se llama|te llamas|le gusta|toma)|qué tal|qué (?:ha hecho|hizo)|algún problema|"
    r"comment (?!vous appelez|t'appelles|s'appelle|prenez|épel)|qu'avez-vous fait|"
    r"como (?!se chama|gosta|toma|se escreve)|o que (?:fez|tem feito)|algum problema|"
    r"com(?:e|') ?(?!si chiama|ti chiami|lo prende|le piace|si scrive)|(?:che )?cosa ha fatto|problemi|"
    r"hoe (?!veel|oud|lang|vaak|heet|is uw naam|schrijf)|wat (?:heeft|heb) (?:u|je) (?:vandaag|gisteren))",
    re.IGNORECASE,
)
_WHEN = re.compile(
    r"\b(?:when|wann|cuándo|quand|quando|wanneer)\b",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"\d|\b(?:after|before|from|mornings?|afternoons?|evenings?|weekends?|nights?|noon|tomorrow|\w+day|at|nach|ab|"
    r"vor|um|"
    r"morgens|vormittags?|nachmittags?|abends?|\w+tags?|antes|después|a partir|mañanas?|tardes?|noches?|lunes|martes|"
    r"miércoles|jueves|viernes|sábados?|domingos?|après|avant|matins?|après-midi|soirs?|lundi|mardi|mercredi|jeudi|"
    r"vendredi|samedi|dimanche|depois|manhãs?|noites?|segundas?|terças?|quartas?|quintas?|sextas?|dopo|prima|mattin\w+|"
    r"pomeriggi\w*|sera|lunedì|martedì|mercoledì|giovedì|venerdì|sabato|domenica|na|voor|vanaf|'s \w+|ochtend\w*|"
    r"middag\w*|avond\w*|\w+dag)\b",
    re.IGNORECASE,
)
_ABOUT_CALLER = re.compile(
    r"\b(?:you|your|you're|du|dein\w*|sie|ihr\w*|usted|tú|tu|su|vous|votre|vos|você|seu|sua|lei|suo|sua|u|"
    r"uw|je|jouw)\b",
    re.IGNORECASE,
)
_DETAIL = re.compile(
    r"\b(?:name|surname|phone|number|e-?mail|address|birth\w*|birthday|zip|post ?code|allerg\w+|diet\w*|"
    r"live|work|job|"
    r"for a living|pets?|kids?|children|married|vegetarian|vegan|smoke|drink|medications?|how old|how many|"
    r"how long|language|"
    r"which day|what time|what date|which date|party size|where|prefer|favou?rite|name|telefon\w*|nummer|"
    r"adresse|wohnen|"
    r"nombre|teléfono|dirección|vive|nom|téléphone|adresse|habitez|nome|telefone|endereço|mora|telefono|"
    r"indirizzo|abita|"
    r"naam|telefoonnummer|adres|woont|rauch\w*|tiere?|haustier\w*|vegetari\w*|vegan\w*|végétari\w*|hijos|niños|"
    r"mascotas?|fuma|enfants|animaux|fumez|filhos|"
    r"animais|figli|animali|huisdier\w*|kinderen|rookt)\b",
    re.IGNORECASE,
)
_ELLIPTIC = re.compile(
    r"^(?:(?:and|oh|okay|ok|right|und|y|et|e|en|ah)[ ,]+)*(?:since when|(?:for )?how long(?: for)?|how so|"
    r"why(?: not| is that)?|how come|really|is it|are you|do you|did you|have you|"
    r"seit wann|wieso|warum|wie lange|desde cuándo|por qué|"
    r"depuis quand|pourquoi|depuis combien de temps|desde quando|porquê|da quando|perché|sinds wanneer|hoezo|waarom|"
    r"hoe lang)(?: denn| dan| al| schon)?\W*$",
    re.IGNORECASE,
)
_YES_NO = re.compile(
    r"^(?:yes|yeah|yep|yup|sure|no|nope|nah|okay|ok|right|correct|exactly|that's right|that's correct|"
    r"please|thanks|"
    r"thank you|fine|great|perfect|of course|absolutely|definitely|not really|it is|it does|i do|i am|"
    r"i don't|ja|nein|nee|"
    r"sí|si|oui|non|sim|não|sì|claro|genau|bitte|danke|gracias|merci|obrigad[oa]|grazie|por favor|it's fine|"
    r"sounds good|[\s,.!])+$",
    re.IGNORECASE,
)
_NO_ANSWER = re.compile(
    r"^(?:\W|\b(?:oh|well|uh|um|hm+|so|and|ach|tja|puh|naja?|pues|bueno|uy|eh|euh|ben|bah|alors|olhe|bem|allora|beh|"
    r"mah|nou)\b)*(?:i (?:don't|do not) (?:know|remember|want to|wanna)|"
    r"i'm not sure|not sure|no idea|"
    r"why|what|who|where|when|how|pardon|sorry|hold on|hang on|wait|one (?:moment|second)|let me|never mind|"
    r"you tell me|you (?:can|may)\b|go (?:on|ahead)|it's the \w+ (?:man|van|door)|(?:it |that )?depends|wait|"
    r"whenever|don't ask|ask me another|now you're asking|good question|"
    r"(?:two|three|a (?:few|couple of)|one or two) (?:\w+ )?things|yes,? (?:two|three|a (?:few|"
    r"couple of)) (?:\w+ )?things|"
    r"(?:das )?kommt (?:ganz )?drauf an|moment|warten sie|(?:zwei|drei) (?:sachen|dinge)|"
    r"fragen sie (?:mich )?(?:lieber )?nicht|"
    r"(?:pues )?depende|espere|un momento|(?:dos|tres) (?:cosas|cositas)|ça dépend|attendez|un instant|(?:deux|"
    r"trois) choses|"
    r"um momento|(?:duas|três) (?:coisas|coisinhas)|dipende|aspetti|un attimo|(?:due|tre) (?:cose|cosette)|"
    r"(?:dat )?hangt ervan af|dat ligt eraan|wacht|(?:twee|drie) (?:dingen|dingetjes)|"
    r"i have a question|i'd like to (?:know|ask)|hello|hi|hey|(?:i )?appreciate|thanks|thank you|"
    r"ich weiß nicht|no sé|je ne sais pas|não sei|non lo so)\b",
    re.IGNORECASE,
)
_DENIES = re.compile(r"^\W*(?:no|nope|nah|nein|non|não|nee)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Asked:
    """The question at the end of an agent's turn."""

    question: str

    @property
    def is_service(self) -> bool:
        """It asks what to do next, not who the caller is."""
        return _SERVICE.search(self.question) is not None

    @property
    def is_elliptic(self) -> bool:
        """It names nothing by itself ("Since when?"), so that an answer to it says nothing."""
        return _ELLIPTIC.match(self.question) is not None

    @property
    def is_open(self) -> bool:
        """It asks how things are or went: moods and stories are told, and facts only in whole sentences."""
        return _OPEN.match(self.question.lstrip(" ¿")) is not None

    @property
    def about_caller(self) -> bool:
        return _ABOUT_CALLER.search(self.question) is not None

    @property
    def wants_detail(self) -> bool:
        """It asks for something that is kept of a caller: a name, a number, a diet."""
        return _DETAIL.search(self.question) is not None

    def is_yes_or_no(self, answer: str) -> bool:
        return _YES_NO.match(answer) is not None

    def lacks_time(self, answer: str) -> bool:
        """It asks when, and the answer names no time ("This week is a bad one")."""
        return _WHEN.search(self.question) is not None and _TIME.search(answer) is None

    def is_no_answer(self, answer: str) -> bool:
        """The answer evades the question, or holds nothing to keep."""
        return not normal(answer) or _NO_ANSWER.match(answer) is not None

    def told(self, answer: str) -> str:
        """Question and answer as one statement of the caller, to be judged by the rules for statements."""
        if _DENIES.match(answer) and not self.is_yes_or_no(answer):
            return answer  # what is denied was the agent's guess
        return f"{declarative(self.question)}, {answer}"


def question_of(text: str) -> Asked | None:
    """The question that ends an agent's turn; None when it does not end with one."""
    parts = list(sentences(text, tags=True))
    if not parts or not is_question(parts[-1]) or len(parts[-1]) > _LONGEST:
        return None
    # A question may end with a tag of its own: "You're in Lisbon. Is that right?"
    if len(parts) > 1 and re.match(
        r"^(?:right|correct|is that (?:right|correct))\?$", parts[-1], re.IGNORECASE
    ):
        return Asked(f"{parts[-2]} {parts[-1]}")
    return Asked(parts[-1])
