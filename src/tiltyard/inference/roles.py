"""Infer what each argument of a tool is."""

from collections.abc import Callable, Iterable
from typing import Final

import msgspec
from msgspec import Struct

from tiltyard.contracts.declaration import Declaration
from tiltyard.inference.arguments import Argument
from tiltyard.inference.kinds import Effect, Role
from tiltyard.inference.vocabulary import word_set
from tiltyard.inference.words import base_forms, first_sentence, has_any, split_name

_SECRETS: Final = word_set(
    "password passwd passphrase passcode secret pin otp credential cvv cvc apikey totp mfa"
)
_ADDRESSES: Final = word_set(
    "url uri link href endpoint webhook callback host hostname domain website remote"
)
RECEIVERS: Final = word_set(
    "recipient receiver addressee payee beneficiary cc bcc participant attendee invitee guest "
    "grantee creditor collaborator delegate"
)
_CONTACTS: Final = word_set(
    "email mail iban bic swift routing phone tel telephone mobile fax msisdn wallet"
)
_PEOPLE: Final = word_set(
    "user username member person people who whom handle contact friend employee customer client "
    "colleague"
)
_PLACES_TO_POST: Final = word_set("channel room group chat conversation space board feed mailing")
_TOWARDS: Final = word_set("to target dest destination recipient receiver ship delivery")
_ACCOUNTS: Final = word_set("account wallet card")
_FROM: Final = word_set("from source sender payer debit origin own my")
_RECEIVES: Final = word_set("recipient receiver receive receives beneficiary payee addressee")
_FILES: Final = word_set(
    "path file filename filepath folder directory dir cwd pathname dirname workdir filenames"
)
_MONEY: Final = word_set("amount cents price sum total fee tip payment euros dollars")
_CODE: Final = word_set(
    "command cmd script sql code expression statement program shell javascript python bash "
    "function snippet source_code"
)
_TIMES: Final = word_set(
    "date time day month year week hour minute start end begin since until before after timestamp "
    "timezone tz deadline due when duration schedule datetime at expiry expires zone slot"
)
_OPTIONS: Final = word_set(
    "limit count n max min maximum minimum page offset sort order format type kind mode level "
    "category currency language lang locale unit depth size width height timeout head tail status "
    "state priority color colour quantity emoji reverse verbose raw include exclude flag recursive "
    "lines encoding scale visibility role action operation method per cursor direction theme "
    "brightness volume severity event coupon step length labels tags"
)
_QUERIES: Final = word_set(
    "query q search filter pattern regex regexp keyword term word jql glob expression topic "
    "criteria needle prefix substring"
)
_LOOKED_FOR: Final = word_set(
    "text name city place location destination origin address country region department town "
    "topic words from to phrase title message tag near"
)
_IDS: Final = word_set(
    "id ids uuid guid key slug ref reference number no sku index handle identifier hash sha nr "
    "target element selector branch revision name num project database table doc assignee list "
    "repo repository team workspace organization organisation service product device item order "
    "card account ticket issue version commit tab"
)
_CONTENTS: Final = word_set(
    "content body text message msg subject title description note comment html markdown data "
    "payload caption reason summary observation line prompt value attachment bio details memo "
    "headline transcript paragraph sentence input comments notes document location headers topic "
    "street city surname holder label reference remark json xml csv image photo feedback answer "
    "reply instructions"
)
_LETTERS: Final = word_set("subject body cc bcc message text html")
"""Beside these, `to` is who receives a letter, also of a draft."""
_TAKING: Final = word_set(
    "kick ban block remove revoke demote suspend disable lock freeze unshare unfollow"
)
"""Verbs whose object receives nothing."""
_RINGING: Final = word_set("call dial ring phone sms fax")
_ACTING: Final = frozenset({Effect.SEND, Effect.PAY, Effect.ACCESS, Effect.UNKNOWN})


class Setting(Struct, frozen=True):
    """What is known about the tool while the roles of its arguments are inferred."""

    effect: Effect
    words: frozenset[str]
    """The words of the tool's name and of the first sentence of its description."""
    verb: str = ""
    siblings: frozenset[str] = frozenset()
    """The words of the names of all arguments."""

    @property
    def reads(self) -> bool:
        return self.effect is Effect.READ

    @property
    def about_files(self) -> bool:
        return bool(has_any(self.words, _FILES))


def words_of(declared: Declaration) -> frozenset[str]:
    """Return the words of a tool's name and first sentence, each in all of its forms."""
    words = (*split_name(declared.name), *first_sentence(declared.description))
    return frozenset(form for word in words for form in base_forms(word))


def infer_roles(arguments: Iterable[Argument], setting: Setting) -> dict[str, Role]:
    """Return the role of each argument by its pointer."""
    several = tuple(arguments)
    siblings = frozenset(word for one in several for word in one.words)
    setting = msgspec.structs.replace(setting, siblings=siblings)
    return {one.pointer: role_of(one, setting) for one in several}


def role_of(one: Argument, setting: Setting) -> Role:
    """Return the role that the first matching rule gives."""
    for rule in _RULES:
        role = rule(one, setting)
        if role is not None:
            return role
    return Role.UNKNOWN


def _named(one: Argument, known: frozenset[str]) -> bool:
    return bool(has_any(one.words, known))


def _last(one: Argument, known: frozenset[str]) -> bool:
    return bool(has_any(one.words[-1:], known))


def _credential(one: Argument, setting: Setting) -> Role | None:
    if one.types and not one.types & {"string", "integer", "number"}:
        return None
    if _named(one, _SECRETS) and not _last(one, frozenset({"id"})):
        return Role.CREDENTIAL
    joined = " ".join(one.words)
    if joined in (
        "token",
        "access token",
        "auth token",
        "bearer token",
        "api key",
        "private key",
        "secret key",
        "access key",
        "api token",
        "session token",
        "refresh token",
    ):
        return Role.CREDENTIAL
    if one.last == "code" and setting.effect is Effect.ACCESS:
        return Role.CREDENTIAL
    proves = {"verification", "security", "confirmation", "auth"}
    if one.last == "code" and proves & {*one.words, *one.described}:
        return Role.CREDENTIAL
    return None


def _choice(one: Argument, setting: Setting) -> Role | None:
    del setting
    if one.choices or one.types == {"boolean"}:
        return Role.OPTION
    return None


def _moment(one: Argument, setting: Setting) -> Role | None:
    del setting
    if one.format in ("date", "time", "date-time", "duration"):
        return Role.OPTION
    if _last(one, _TIMES) and not one.types & {"object"}:
        return Role.OPTION
    return None


def _identified(one: Argument, setting: Setting) -> Role | None:
    """Find identifiers: `file_id` is no file, but `to_account_id` is where money goes."""
    if _last(one, frozenset({"id", "ids", "uuid", "guid", "sha", "slug", "index"})):
        if setting.effect is Effect.PAY and _receives(one):
            return Role.DESTINATION
        if setting.effect in _ACTING and _named(one, RECEIVERS | _PLACES_TO_POST | _PEOPLE):
            return Role.DESTINATION
        if setting.effect is Effect.PAY and one.words[0] in _TOWARDS:
            return Role.DESTINATION
        return Role.IDENTIFIER
    return None


def _receives(one: Argument) -> bool:
    return bool(has_any([*one.words, *one.parents, *one.described], _RECEIVES | RECEIVERS))


def _address(one: Argument, setting: Setting) -> Role | None:
    """Find an address that the tool contacts: a destination, also if the tool only reads."""
    if not one.is_text or "object" in one.types:
        return None
    if one.format in ("uri", "url", "iri", "hostname", "uri-reference", "ipv4", "ipv6"):
        return Role.DESTINATION
    if _last(one, _ADDRESSES):
        return Role.DESTINATION
    starts = one.described[:6]
    if "url" in starts and not _named(one, _QUERIES) and not _last(one, _IDS):
        return Role.DESTINATION
    if "email" in one.format and not setting.reads:
        return Role.DESTINATION
    return None


def _receiver(one: Argument, setting: Setting) -> Role | None:
    if not one.is_text:
        return None
    numeric_name = one.last in ("number", "no") and "phone" in one.described
    if setting.reads:
        return Role.IDENTIFIER if _named(one, _CONTACTS) or numeric_name else None
    if _named(one, _FROM) and not _named(one, RECEIVERS):
        return None
    if setting.effect is Effect.DELETE:
        return None
    if _named(one, RECEIVERS | _CONTACTS) or numeric_name:
        return Role.DESTINATION
    if has_any(one.parents, RECEIVERS) and _last(one, _IDS | _PEOPLE | _ACCOUNTS):
        return Role.DESTINATION
    described = " ".join(one.described)
    if "email address" in described or "phone number" in described:
        return Role.DESTINATION
    if _points_outside(one, setting):
        return Role.DESTINATION
    return None


def _points_outside(one: Argument, setting: Setting) -> bool:
    """Say whether `to` or `address` is one: not if the tool moves files or links records."""
    if one.words == ("to",) and setting.siblings & _LETTERS:
        return True
    if one.last in ("to", "destination", "dest", "target") or "to" in one.words:
        if setting.about_files or has_any(one.described, _FILES):
            return False
        if one.last == "target" or setting.effect not in _ACTING:
            return False
        return not has_any(one.described, frozenset({"entity", "node", "element", "status"}))
    if one.last == "address" and setting.effect in _ACTING | {Effect.WRITE}:
        return True
    if setting.effect not in _ACTING:
        return False
    if _last(one, _PEOPLE) or one.last == "with":
        return setting.verb not in _TAKING
    if setting.effect is Effect.PAY and "account" in one.words:
        others = setting.siblings - {*one.words}
        return one.words[0] in _TOWARDS or not has_any(others, RECEIVERS | _CONTACTS | _TOWARDS)
    if setting.effect in (Effect.SEND, Effect.UNKNOWN) and _is_place_to_post(one, setting):
        return True
    return _receives(one) and not _named(one, _CONTENTS | _MONEY)


def _is_place_to_post(one: Argument, setting: Setting) -> bool:
    if _named(one, _PLACES_TO_POST) or one.last == "server":
        return True
    if one.words == ("topic",):
        return bool(setting.siblings & _LETTERS)
    return one.words == ("number",) and bool(has_any(setting.words, _RINGING))


def _path(one: Argument, setting: Setting) -> Role | None:
    if not one.is_text or "object" in one.types:
        return None
    described = " ".join(one.described[:12])
    if _last(one, _FILES) or (_named(one, _FILES) and one.last in ("name", "names", "to")):
        return Role.PATH
    elsewhere = one.described and not has_any(one.described, _FILES)
    if (
        setting.about_files
        and not elsewhere
        and one.last in ("source", "destination", "src", "dest", "dst", "target")
    ):
        return Role.PATH
    if any(form in described for form in ("file name", "path to", "file path", "output file")):
        return Role.PATH
    if one.words[:1] in (("save",), ("output",), ("out",), ("store",)) and one.last != "type":
        return Role.PATH
    return None


def _amount(one: Argument, setting: Setting) -> Role | None:
    del setting
    bounded = {"max", "min", "maximum", "minimum"} & {*one.words}
    if one.last in ("type", "currency") or bounded or "boolean" in one.types:
        return None
    if _named(one, _MONEY):
        return Role.AMOUNT
    return None


def _command(one: Argument, setting: Setting) -> Role | None:
    if not one.is_text:
        return None
    if _last(one, frozenset({"command", "cmd", "script", "sql", "shell", "javascript"})):
        return Role.COMMAND
    if setting.effect is Effect.EXECUTE and (_last(one, _CODE) or "code" in one.described):
        if _named(one, _FILES):
            return None
        return Role.COMMAND
    return None


def _number(one: Argument, setting: Setting) -> Role | None:
    del setting
    if one.types and one.types <= {"number", "integer"}:
        numbered = _last(one, frozenset({"number", "no", "nr", "index", "key"}))
        return Role.IDENTIFIER if numbered else Role.OPTION
    return None


def _query(one: Argument, setting: Setting) -> Role | None:
    if _last(one, _QUERIES) and not (one.last == "topic" and not setting.reads):
        return Role.QUERY
    if not setting.reads:
        return _search_text(one)
    lists = has_any(setting.words, frozenset({"search", "find", "lookup", "query", "match"}))
    if _last(one, frozenset({"name"})) and not lists:
        return None
    return Role.QUERY if _last(one, _LOOKED_FOR) or "text" in one.words else None


def _search_text(one: Argument) -> Role | None:
    described = " ".join(one.described[:8])
    return Role.QUERY if "to search for" in described or "to find" in described else None


def _content(one: Argument, setting: Setting) -> Role | None:
    if _last(one, _CONTENTS) or (_named(one, _CONTENTS) and not _last(one, _IDS | _OPTIONS)):
        return Role.CONTENT
    if setting.effect is Effect.WRITE and _last(one, frozenset({"name"})) and len(one.words) > 1:
        given = {"new", "first", "last", "full", "display", "middle"} & {*one.words}
        return Role.CONTENT if given else None
    return None


def _described_moment(one: Argument, setting: Setting) -> Role | None:
    """Find a date by its description, after the rules for destinations and paths."""
    del setting
    return Role.OPTION if {"yyyy", "iso", "timestamp"} & {*one.described} else None


def _option(one: Argument, setting: Setting) -> Role | None:
    del setting
    starts = {"is", "sort", "max", "min", "page", "per", "include", "exclude"}
    return Role.OPTION if _last(one, _OPTIONS) or starts & {*one.words[:1]} else None


def _identifier(one: Argument, setting: Setting) -> Role | None:
    if _last(one, _IDS | _PEOPLE | _ACCOUNTS | _PLACES_TO_POST):
        return Role.IDENTIFIER
    if any(form in setting.words for word in one.words[-1:] for form in base_forms(word)):
        return Role.IDENTIFIER
    described = [form for word in one.described[:4] for form in base_forms(word)]
    if {"id", "identifier", "name"} & {*described}:
        return Role.IDENTIFIER
    return None


_RULES: Final[tuple[Callable[[Argument, Setting], Role | None], ...]] = (
    _credential,
    _choice,
    _moment,
    _identified,
    _command,
    _path,
    _address,
    _receiver,
    _amount,
    _number,
    _query,
    _content,
    _described_moment,
    _option,
    _identifier,
)
