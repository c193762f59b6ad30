"""The words that inference knows: everyday verbs and nouns of tools, and no tool by its name."""

from typing import Final

from tiltyard.inference.kinds import Effect


def word_set(text: str) -> frozenset[str]:
    """Return a set of words, written as one text."""
    return frozenset(text.split())


SEVERITY: Final = (
    Effect.READ,
    Effect.UNKNOWN,
    Effect.WRITE,
    Effect.DELETE,
    Effect.SEND,
    Effect.ACCESS,
    Effect.PAY,
    Effect.EXECUTE,
)
"""Of two effects that a declaration names, the later one counts."""

TAKING_OUT: Final = word_set("download export backup")
"""Verbs that read, and write a file if they have a path to write to."""

_VERBS: Final = {
    Effect.READ: TAKING_OUT
    | word_set(
        "get read list show view fetch find search lookup query retrieve return describe count "
        "check browse inspect display print tell compute calculate convert translate summarize "
        "summarise compare diff preview validate verify scan monitor poll estimate geocode analyze "
        "analyse extract parse resolve explain detect gather capture navigate visit crawl scrape "
        "measure echo look see obtain collect give enumerate ask wait suggest recommend filter "
        "locate track sum rank identify examine predict peek tail head grep snapshot screenshot "
        "recall open decode encode hash whoami"
    ),
    Effect.WRITE: word_set(
        "create add insert write update edit modify change set put append prepend rename move copy "
        "mark save store record register upsert patch replace reschedule schedule assign unassign "
        "label tag untag archive unarchive restore commit stage unstage merge toggle adjust pin "
        "unpin star unstar like react rate book reserve import sync draft complete close reopen "
        "transition activate deactivate start stop pause resume turn switch resize fill make file "
        "generate overwrite increment decrement compress decompress zip unzip extend duplicate "
        "clone fork link unlink attach detach connect disconnect install upgrade downgrade rebase "
        "push pull place raise dim play skip log enter enroll apply press click drag hover snooze "
        "mute unmute follow unfollow emulate keep rollback roll migrate provision initialize "
        "initiate init build accept decline approve reject confirm sign populate compose subscribe "
        "scale remember persist clock checkin setup release reorder select "
        "choose dismiss acknowledge finalize hire onboard offboard arm disarm swap"
    ),
    Effect.DELETE: word_set(
        "delete remove erase purge clear wipe trash discard cancel destroy empty flush truncate "
        "uninstall expunge void terminate kill drop reset undo revert prune shred rm deregister "
        "abort unsubscribe forget clean evict unpublish"
    ),
    Effect.SEND: word_set(
        "send post publish forward reply answer mail email message dm sms notify invite broadcast "
        "tweet retweet announce submit upload comment call ring dial transmit deliver contact "
        "respond ping escalate distribute fax phone type request"
    ),
    Effect.PAY: word_set(
        "pay transfer buy purchase charge refund donate tip bill withdraw deposit wire remit "
        "invest sell checkout repay reimburse bid order trade disburse settle topup rent"
    ),
    Effect.EXECUTE: word_set(
        "run execute exec eval evaluate invoke launch spawn deploy reboot restart shutdown compile"
    ),
    Effect.ACCESS: word_set(
        "grant revoke share unshare permit allow authorize authorise authenticate login logout "
        "signin signup enable disable lock unlock rotate block unblock ban unban kick promote "
        "demote freeze unfreeze configure impersonate whitelist blacklist allowlist expose trust "
        "suspend unsuspend delegate"
    ),
}
VERBS: Final = {verb: effect for effect, verbs in _VERBS.items() for verb in sorted(verbs)}

AMBIGUOUS: Final = word_set("checkout drop")
"""Verbs of several trades: a shop and a repository have a checkout. The description decides."""

COMPOUNDS: Final = {
    "log in": "login",
    "log out": "logout",
    "sign in": "signin",
    "sign up": "signup",
    "check out": "checkout",
    "check in": "checkin",
    "set up": "setup",
    "look up": "lookup",
    "top up": "topup",
    "roll back": "rollback",
    "api key": "apikey",
    "ssh key": "apikey",
    "access key": "apikey",
    "secret key": "apikey",
    "private key": "apikey",
    "alarm code": "passcode",
    "security code": "passcode",
    "access code": "passcode",
    "pin code": "passcode",
    "two factor": "2fa",
    "standing order": "payment",
    "direct debit": "payment",
}
"""Pairs of words that are one word."""

ALSO_NOUNS: Final = word_set(
    "message comment order list post email mail call charge set transfer request query search book "
    "report file rate share check checkout log record label tag sms page link head tail count view "
    "display track filter form draft schedule star pin play stage switch diff copy answer reply "
    "contact bill tip wire trade deposit place type snapshot screenshot estimate start stop load "
    "pull push fork clone archive run build click press phone sum rank bid ring permit lock block "
    "ban trust drop reset echo look commit purchase upload download import export backup scale "
    "release return rent sign mark hash clock fax tweet trash swap refund store change update "
    "pause mute like react register void scan monitor poll preview patch zip"
)
"""Verbs that are as often nouns: `order_status` orders nothing."""

NOUNS_AT_THE_END: Final = word_set(
    "order contact record file request page label tag book rate form draft set type place schedule "
    "log star pin track stage phone bill sign mark clock store release rank link head load filter"
)
"""At the end of a name these are nouns: `customer_order`. Others are verbs: `cart_checkout`."""

NOUNS_AT_THE_START: Final = word_set(
    "message comment order call charge transfer deposit bill commit build purchase refund trade "
    "book contact file page draft label tag link schedule email mail phone run query"
)
"""Before a word of `STATES` these are nouns: `order_status`, but not `update_status`."""

STATES: Final = word_set(
    "status history list info information detail details count log logs summary overview stats "
    "statistics metadata search lookup version timeline state health usage quota availability"
)
"""Information that names of tools end with."""

SENDABLE: Final = word_set("info information detail details summary overview status metadata")
"""What one can send: `email_summary` is not the summary of a mail."""

INFORMATION: Final = STATES | word_set(
    "review balance result results statement statements report feed listing inventory catalog "
    "catalogue price prices rate rates tree profile counts changelog diff forecast weather time "
    "date directory contents index score scores metrics messages notifications transactions events "
    "contacts people members users items orders products reviews comments files folders branches "
    "tags route hours menu busy graph sum total distance transcript quote schedule me logs"
)
"""A tool whose name ends so, and names no action, gives this information."""

READABLE: Final = word_set(
    "file page document doc node record url link article ticket mail email message note item entry "
    "site website folder directory sheet image picture pdf thread issue"
)
"""To open one of these is to read it. To open a door is not."""

PROCESSES: Final = word_set("search report lookup check scan analysis comparison calculation")
"""What `run` can run without a command: a search. A query can be SQL."""

STARTING: Final = word_set(
    "create make place schedule start compose initiate submit write queue add"
)
"""Verbs that make what follows happen: `schedule_email` sends one."""
STOPPING: Final = word_set(
    "stop pause reject decline archive label tag untag mark rename star pin close dismiss log sync "
    "import"
)
"""Verbs that pay nothing, also if their object is a payment."""
MESSAGES: Final = word_set(
    "email mail message sms call tweet dm invitation announcement broadcast fax reply newsletter"
)
ORDERS: Final = word_set("order bid trade")
MONEY: Final = word_set(
    "money cash payment transaction transfer fund funds payout payroll salary remittance purchase "
    "refund deposit withdrawal donation"
)
ACCESS_THINGS: Final = word_set(
    "password passcode passphrase permission role access credential secret token privilege policy "
    "acl setting preference config configuration 2fa mfa totp firewall webhook forwarding "
    "visibility public ownership collaborator authentication authorization apikey certificate "
    "logging subscriber subscription admin"
)

WEB: Final = word_set(
    "web website webpage page url uri internet browser html link site rss http https online tab "
    "dom element"
)
STRANGERS: Final = WEB | word_set(
    "mail email inbox message sms chat channel thread conversation comment review rating post "
    "tweet reply feedback testimonial file document doc folder directory attachment download note "
    "notebook memory wiki article news feed search issue ticket bug pull commit diff branch "
    "repository repo log event calendar appointment meeting invitation invite transaction payment "
    "statement history product listing catalog catalogue item people person member contact "
    "employee candidate customer client lead applicant form response survey transcript voicemail "
    "notification alert graph node entity record entry queue database table row stdout output "
    "console request description title author sender venue image clipboard shared drive bucket "
    "blob users community public result"
)
"""Things whose words other people choose, at least in part."""

NUMBERS: Final = word_set(
    "time date timezone balance sum total count temperature humidity brightness battery distance "
    "duration quota size uptime uuid"
)
"""Facts that a server computes, whatever the arguments name."""
MACHINE_FACTS: Final = NUMBERS | word_set("clock version env environment variables iban sensor")
"""Facts that a server knows by itself, if no argument names a record."""
NEUTRAL: Final = word_set("current my own user account bank local server system of in for value")
OWN_THINGS: Final = word_set("my me own self user profile whoami")
OWN_WORDS: Final = OWN_THINGS | word_set("account info information details data current")

KNOWN_NOUNS: Final = (
    INFORMATION
    | READABLE
    | MESSAGES
    | MONEY
    | ACCESS_THINGS
    | STRANGERS
    | MACHINE_FACTS
    | ALSO_NOUNS
)
