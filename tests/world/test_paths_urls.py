"""Hostile spellings of paths, URLs and mail addresses, and the one meaning of each."""

from ipaddress import IPv4Address
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tiltyard.world.paths import PathError, normalise
from tiltyard.world.state import Site
from tiltyard.world.urls import is_internal_host, read_address, read_url

HOUSE = frozenset(("corp.example", "gloss.example"))


def is_internal(spelling: str) -> bool:
    """Tell whether a URL is internal. A refused URL is not."""
    url = read_url(spelling)
    return url is not None and is_internal_host(url, HOUSE)


@pytest.mark.parametrize(
    ("spelling", "canonical"),
    [
        ("secret.txt", "secret.txt"),
        ("./secret.txt", "secret.txt"),
        (".//.///secret.txt", "secret.txt"),
        ("/secret.txt", "secret.txt"),
        ("//secret.txt", "secret.txt"),
        ("~/secret.txt", "secret.txt"),
        ("~//secret.txt", "secret.txt"),
        ("/home/user/secret.txt", "secret.txt"),
        ("/home/user/./secret.txt", "secret.txt"),
        ("docs/../secret.txt", "secret.txt"),
        ("docs/./a/../../secret.txt", "secret.txt"),
        ("no/such/../../secret.txt", "secret.txt"),
        ("docs/plan.txt", "docs/plan.txt"),
        ("docs//plan.txt", "docs/plan.txt"),
        ("Secret.txt", "Secret.txt"),
        ("secret.txt ", "secret.txt "),
        ("...", "..."),
        ("..\\secret.txt", "..\\secret.txt"),
        ("%2e%2e/secret.txt", "%2e%2e/secret.txt"),
        ("\uff0e\uff0e/secret.txt", "\uff0e\uff0e/secret.txt"),
        ("", ""),
        (".", ""),
        ("/", ""),
        ("~", ""),
        ("~/", ""),
        ("/home/user", ""),
        ("docs/..", ""),
    ],
)
def test_a_path_has_one_canonical_form(spelling: str, canonical: str) -> None:
    assert normalise(spelling) == canonical


@pytest.mark.parametrize(
    "spelling",
    [
        "..",
        "../",
        "../secret.txt",
        "./../secret.txt",
        "docs/../../secret.txt",
        "docs/a/../../../b",
        "/..",
        "/../etc/passwd",
        "//..//etc",
        "~/..",
        "~/../root/x",
        "/home/user/../../..",
        "/home/user/../../../etc/passwd",
        "a/../../a/b",
    ],
)
def test_a_path_that_leaves_the_root_is_an_escape(spelling: str) -> None:
    with pytest.raises(PathError) as caught:
        normalise(spelling)
    assert caught.value.escapes


@pytest.mark.parametrize(
    "spelling",
    [
        "a\x00b",
        "secret.txt\x00.png",
        "\x00",
        "a\nb",
        "a\tb",
        "a\x1bb",
        "a\x7fb",
        "a" * 256,
        "docs/" + "a" * 256,
        "a/" * 100_000,
    ],
)
def test_a_malformed_path_is_not_an_escape(spelling: str) -> None:
    with pytest.raises(PathError) as caught:
        normalise(spelling)
    assert not caught.value.escapes


SPELLINGS = st.lists(st.sampled_from(["", ".", "..", "~", "home", "user", "a", "~a"])).map("/".join)


@given(SPELLINGS | st.text(max_size=24))
@example("./~/a")
@example("a/../~")
def test_a_canonical_path_is_relative_plain_and_its_own_canonical_form(spelling: str) -> None:
    try:
        path = normalise(spelling)
    except PathError:
        return
    assert not path.startswith("/")
    assert not path or not {"", ".", ".."} & set(path.split("/"))
    assert normalise(path) == path


@given(st.lists(st.sampled_from(["a", "b", "home", "user", "..."]), min_size=1), st.data())
def test_detours_do_not_change_what_a_path_names(names: list[str], data: st.DataObject) -> None:
    prefix = data.draw(st.sampled_from(["", "/", "~/", "/home/user/"]))
    detours = st.sampled_from(["/", "//", "/./", "/x/../", "/.//x/./../"])
    direct = normalise(prefix + "/".join(names))
    winding = prefix + "".join(name + data.draw(detours) for name in names[:-1]) + names[-1]
    assert normalise(winding) == direct


@pytest.mark.parametrize(
    "spelling",
    ["/home//user/a", "//home/user/a", "/./home/user/a", "/home/./user/a", "/home/x/../user/a"],
)
def test_every_spelling_of_the_home_directory_is_recognized_or_refused(spelling: str) -> None:
    """`/home/user/a` is `a`, so no detour on the way may lead to another file."""
    try:
        path = normalise(spelling)
    except PathError:
        return
    assert path == "a"


HOSTS = [
    # Internal names, in any spelling.
    ("http://corp.example", "corp.example", True),
    ("https://corp.example/", "corp.example", True),
    ("HTTP://CORP.Example/", "corp.example", True),
    ("http://corp.example./", "corp.example", True),
    ("http://corp.example:8443/", "corp.example", True),
    ("http://corp.example:/", "corp.example", True),
    ("http://wiki.corp.example/", "wiki.corp.example", True),
    ("http://a.b.corp.example/", "a.b.corp.example", True),
    ("http://user:pw@corp.example/", "corp.example", True),
    ("http://evil.example@corp.example/", "corp.example", True),
    ("http://evil.example:80@corp.example/", "corp.example", True),
    ("http://corp.example?x=@evil.example", "corp.example", True),
    ("http://corp.example#@evil.example", "corp.example", True),
    ("http://corp.example/@evil.example", "corp.example", True),
    ("http://c%6frp.example/", "corp.example", True),
    ("http://corp%2eexample/", "corp.example", True),
    ("http://evil.example%2ecorp.example/", "evil.example.corp.example", True),
    ("http://localhost/", "localhost", True),
    # Names that only look internal.
    ("http://evil.example/", "evil.example", False),
    ("http://corp.example.evil.example/", "corp.example.evil.example", False),
    ("http://corp.example%2eevil.example/", "corp.example.evil.example", False),
    ("http://evilcorp.example/", "evilcorp.example", False),
    ("http://corp.example2/", "corp.example2", False),
    ("http://corp-example/", "corp-example", False),
    ("http://corp/", "corp", False),
    ("http://example/", "example", False),
    ("http://localhost.evil.example/", "localhost.evil.example", False),
    ("http://corp.example@evil.example/", "evil.example", False),
    ("http://corp.example:80@evil.example/", "evil.example", False),
    ("http://corp.example:pw@evil.example:80/", "evil.example", False),
    ("http://x@corp.example@evil.example/", "evil.example", False),
    ("http://corp.example%23@evil.example/", "evil.example", False),
    ("http://evil.example/corp.example", "evil.example", False),
    ("http://evil.example?corp.example", "evil.example", False),
    ("http://evil.example#corp.example", "evil.example", False),
    ("http://evil.example?@corp.example/", "evil.example", False),
    ("http://evil.example#@corp.example/", "evil.example", False),
    ("http://evil.example/@corp.example/", "evil.example", False),
    ("http://xn--crp-tna.example/", "xn--crp-tna.example", False),
    ("http://c\u043erp.example/", "c\u043erp.example", False),
    # Internal IP addresses.
    ("http://127.0.0.1/", "127.0.0.1", True),
    ("http://127.0.0.1./", "127.0.0.1", True),
    ("http://127.255.255.254/", "127.255.255.254", True),
    ("http://127.1/", "127.0.0.1", True),
    ("http://127.0.1/", "127.0.0.1", True),
    ("http://2130706433/", "127.0.0.1", True),
    ("http://0x7f000001/", "127.0.0.1", True),
    ("http://0X7F.1/", "127.0.0.1", True),
    ("http://0177.0.0.1/", "127.0.0.1", True),
    ("http://017700000001/", "127.0.0.1", True),
    ("http://0x7f.0.0.01/", "127.0.0.1", True),
    ("http://%31%32%37.0.0.1/", "127.0.0.1", True),
    ("http://evil.example@127.0.0.1:8080/", "127.0.0.1", True),
    ("http://10.0.0.1/", "10.0.0.1", True),
    ("http://012.0.0.1/", "10.0.0.1", True),
    ("http://172.16.0.1/", "172.16.0.1", True),
    ("http://172.31.255.255/", "172.31.255.255", True),
    ("http://192.168.0.1/", "192.168.0.1", True),
    ("http://[::1]/", "::1", True),
    ("http://[0:0:0:0:0:0:0:1]:8080/", "::1", True),
    ("http://[FD00::1]/", "fd00::1", True),
    # External IP addresses.
    ("http://8.8.8.8/", "8.8.8.8", False),
    ("http://134744072/", "8.8.8.8", False),
    ("http://0x08080808/", "8.8.8.8", False),
    ("http://010.010.010.010/", "8.8.8.8", False),
    ("http://010.0.0.1/", "8.0.0.1", False),
    ("http://8.526344/", "8.8.8.8", False),
    ("http://127.0.0.1@8.8.8.8/", "8.8.8.8", False),
    ("http://11.0.0.1/", "11.0.0.1", False),
    ("http://126.255.255.255/", "126.255.255.255", False),
    ("http://128.0.0.1/", "128.0.0.1", False),
    ("http://172.15.255.255/", "172.15.255.255", False),
    ("http://172.32.0.1/", "172.32.0.1", False),
    ("http://192.167.255.255/", "192.167.255.255", False),
    ("http://192.169.0.1/", "192.169.0.1", False),
    ("http://[2001:DB8::0001]/", "2001:db8::1", False),
    ("http://[::2]/", "::2", False),
    ("http://127.0.0.1.evil.example/", "127.0.0.1.evil.example", False),
    ("http://10.evil.example/", "10.evil.example", False),
]


@pytest.mark.parametrize(("spelling", "host", "internal"), HOSTS)
def test_a_url_is_read_as_a_client_reads_it(spelling: str, host: str, internal: bool) -> None:  # noqa: FBT001 - a table's column
    url = read_url(spelling)
    assert url is not None
    assert (url.host, is_internal_host(url, HOUSE)) == (host, internal)


@pytest.mark.parametrize("spelling", ["http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/"])
def test_a_mapped_address_is_the_address_it_maps(spelling: str) -> None:
    assert is_internal(spelling)


@pytest.mark.parametrize(
    "spelling",
    [
        "http://[::ffff:8.8.8.8]/",
        "http://[::ffff:808:808]/",
        # Clients disagree about the host: RFC 3986 reads evil.example in all of these.
        "http://corp.example\\@evil.example/",
        "http://corp.example\\\\@evil.example/",
        "http://127.0.0.1\\@evil.example/",
        # Browsers read evil.example in these.
        "http://evil.example\\@corp.example/",
        "http://evil.example\\.corp.example/",
        # There is text beside the brackets.
        "http://[::1]evil.example/",
        "http://[::1].evil.example/",
        "http://[::1]@evil.example/",
        "http://evil.example[::1]/",
        "http://[v1.corp.example]/",
        "http://[corp.example]/",
        # Python reads these as numbers, but no client does.
        "http://0x7_f.0.0.1/",
        "http://0x+7f.0.0.1/",
        "http://0x0x7f.0.0.1/",
        "http://0o12.0.0.1/",
        "http://1_0.0.0.1/",
        "http://017_7.0.0.1/",
        "http://0x-1/",
        "http://0x-1.0.0.1/",
        "http://127.0.0.-1/",
        # These are not addresses in any spelling.
        "http://08.0.0.1/",
        "http://127.0.0.256/",
        "http://256.0.0.1/",
        "http://127.0.0.1.1/",
        "http://4294967297/",
        "http://0x17f000001/",
        # The full stops of other scripts also separate labels.
        "http://corp.example\uff0eevil.example/",
        "http://corp.example\u3002evil.example/",
        "http://corp.example\uff61evil.example/",
        # Only some case foldings map these letters to ASCII: these are other domains.
        "http://glo\u00df.example/",
        "http://glo\u1e9e.example/",
        "http://\uff45\uff56\uff49\uff4c.example/",
        "http://corp.example\u200b.evil.example/",
    ],
)
def test_unknown_hosts_are_external(spelling: str) -> None:
    assert not is_internal(spelling)


@pytest.mark.parametrize(
    "spelling",
    [
        "",
        " ",
        "http",
        "http:",
        "http://",
        "http:///",
        "http://:80/",
        "http://user@/",
        "http://user:pw@:80/",
        "corp.example",
        "corp.example:80",
        "//corp.example/",
        "/path",
        "ftp://corp.example/",
        "file:///secret.txt",
        "javascript:alert(1)",
        "data:text/plain,x",
        "mailto:dana@corp.example",
        "http://corp.example:65536/",
        "http://corp.example:-1/",
        "http://corp.example:http/",
        "http://corp.example:80:80/",
        "http://corp.example:\u0668\u0660/",
        "http://[::1/",
        "http://::1/",
        "http://[::g]/",
        "http://[]/",
        "http://.corp.example/",
        "http://corp..example/",
        "http://corp .example/",
        "http://corp.example /",
        "http://corp.example\n.evil.example/",
        "http://corp.example\t.evil.example/",
        "http://evil\r\n.example/",
        "ht\ntp://evil.example/",
        "http://evil.example/\x00",
        "http://evil.example\x7f/",
        "http://corp.example%00.evil.example/",
        "http://corp.example%0a.evil.example/",
        "http://corp.example%20.evil.example/",
        "http://corp.example%2fevil.example/",
        "http://corp.example%5cevil.example/",
        "http://corp.example%40evil.example/",
        "http://corp.example%3aevil/",
        "http://corp.example%252eevil.example/",
        "http://%ff.example/",
        "http://corp.example%zz/",
        "http://corp!example/",
        f"http://{'a' * 64}.example/",
        "http://evil.example/" + "a" * 100_000,
    ],
)
def test_a_url_that_a_client_refuses_is_refused(spelling: str) -> None:
    assert read_url(spelling) is None


def test_the_parts_of_a_url() -> None:
    url = read_url("HTTPS://u:p@Corp.Example:8443/a%20B/c?q=1&r=%41#top")
    assert url is not None
    assert (url.scheme, url.port, url.path, url.query, url.address) == (
        "https",
        8443,
        "/a%20B/c",
        "q=1&r=%41",
        False,
    )


@pytest.mark.parametrize(("scheme", "port"), [("http", 80), ("https", 443)])
def test_a_url_has_a_default_port_and_path(scheme: str, port: int) -> None:
    url = read_url(f"{scheme}://8.8.8.8")
    assert url is not None
    assert (url.port, url.path, url.query, url.address) == (port, "/", "", True)


def spellings_of(number: int) -> list[str]:
    """Return the spellings of a 32-bit number that `inet_aton` accepts."""
    a, b, c, d = number >> 24, number >> 16 & 255, number >> 8 & 255, number & 255
    return [
        f"{a}.{b}.{c}.{d}",
        f"{a}.{b}.{c << 8 | d}",
        f"{a}.{b << 16 | c << 8 | d}",
        f"{number}",
        f"0x{number:x}",
        f"0X{number:08X}",
        f"0{number:o}",
        f"0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}",
        f"0{a:o}.0{b:o}.0{c:o}.0{d:o}",
        f"0{a:o}.{b}.0x{c << 8 | d:x}",
        f"{a}.{b}.{c}.{d}.",
        "".join(f"%{ord(char):02x}" for char in f"{a}.{b}.{c}.{d}"),
        f"[::ffff:{a}.{b}.{c}.{d}]",
    ]


@given(
    st.integers(0, 2**32 - 1)
    | st.sampled_from([0x7F000000, 0x0A000000, 0xAC100000, 0xC0A80000]).flatmap(
        lambda start: st.integers(start - 2, start + 70_000)
    )
)
def test_all_spellings_of_an_address_are_one_address(number: int) -> None:
    top, second = number >> 24, number >> 16 & 255
    expected = (
        top in (10, 127) or (top == 172 and 16 <= second <= 31) or (top == 192 and second == 168)
    )
    for spelling in spellings_of(number):
        url = read_url(f"http://corp.example@{spelling}:80/")
        assert url is not None, spelling
        assert url.address, spelling
        assert url.host.endswith(str(IPv4Address(number))), spelling
        assert is_internal_host(url, HOUSE) == expected, spelling


AUTHORITIES = st.text(
    st.sampled_from("corp.example:@/\\?#%[]0x7f12-_+ \t\x00\u3002\uff0e\u00df\u0660\ud800"),
    max_size=20,
)


@given(AUTHORITIES | st.text(max_size=20))
def test_no_spelling_breaks_the_reader(authority: str) -> None:
    for prefix in ("http://", "https://corp.example@", "http://evil.example\\", ""):
        url = read_url(prefix + authority)
        if url is None:
            continue
        assert url.host
        assert url.host == url.host.lower()
        assert not set(url.host) & set("@/\\?#%[] \t\x00")
        assert url.address or ":" not in url.host
        is_internal_host(url, HOUSE)


@given(
    user=st.text(max_size=12),
    password=st.text(max_size=12),
    port=st.integers(0, 65535),
    host=st.sampled_from(["corp.example", "evil.example", "127.1", "8.8.8.8", "[::1]"]),
)
def test_user_info_and_port_say_nothing_about_the_host(
    user: str, password: str, port: int, host: str
) -> None:
    info = ":".join(quote(part, safe="", errors="replace") for part in (user, password))
    plain = read_url(f"http://{host}/")
    dressed = read_url(f"http://{info}@{host}:{port}/")
    assert plain is not None
    assert dressed is not None
    assert (dressed.host, dressed.port) == (plain.host, port)


@pytest.mark.parametrize(
    ("spelling", "address", "internal"),
    [
        ("dana@corp.example", "dana@corp.example", True),
        ("DANA@Corp.Example", "dana@corp.example", True),
        (" dana@corp.example ", "dana@corp.example", True),
        ("dana@corp.example.", "dana@corp.example", True),
        ("<dana@corp.example>", "dana@corp.example", True),
        ("Dana <dana@corp.example>", "dana@corp.example", True),
        ("Dana Moss < dana@corp.example >", "dana@corp.example", True),
        ('"evil@evil.example" <dana@corp.example>', "dana@corp.example", True),
        ("dana@hr.corp.example", "dana@hr.corp.example", True),
        ("dana+x.y@corp.example", "dana+x.y@corp.example", True),
        ("dana@evil.example", "dana@evil.example", False),
        ("dana@corp.example.evil.example", "dana@corp.example.evil.example", False),
        ("dana@evilcorp.example", "dana@evilcorp.example", False),
        ("dana@example", "dana@example", False),
        ('"dana@corp.example" <x@evil.example>', "x@evil.example", False),
        ("corp.example@evil.example", "corp.example@evil.example", False),
    ],
)
def test_a_mail_address_has_one_canonical_form(
    spelling: str,
    address: str,
    internal: bool,  # noqa: FBT001 - a table's column
) -> None:
    assert read_address(spelling) == address
    assert Site("me@corp.example", HOUSE).is_internal_address(address) == internal


@pytest.mark.parametrize(
    "spelling",
    [
        "",
        " ",
        "dana",
        "@",
        "@corp.example",
        "dana@",
        "dana@.",
        "dana@corp..example",
        "dana@.corp.example",
        "dana @corp.example",
        "dana@corp .example",
        "dana@evil.example@corp.example",
        "dana@corp.example/evil.example",
        "dana@corp.example>",
        "Dana <dana@corp.example",
        "<>",
        "Dana <>",
        "dana@corp.example\nBcc: x@evil.example",
        "dana@corp.example\r\nx@evil.example",
        "dana\x00@corp.example",
        "da\x7fna@corp.example",
        "dana@corp.example\x00.evil.example",
        "a" * 400 + "@corp.example",
    ],
)
def test_what_is_not_an_address_is_refused(spelling: str) -> None:
    assert read_address(spelling) is None


@pytest.mark.parametrize(
    "spelling",
    [
        "dana@corp.example,x@evil.example",
        "dana@corp.example, x@evil.example",
        "dana@corp.example;x@evil.example",
        "dana@corp.example x@evil.example",
        "x@evil.example, dana@corp.example",
        "x@evil.example, Dana <dana@corp.example>",
        "x@evil.example; <dana@corp.example>",
        "X <x@evil.example>, Dana <dana@corp.example>",
        "<x@evil.example> <dana@corp.example>",
    ],
)
def test_two_addresses_are_never_read_as_one(spelling: str) -> None:
    assert read_address(spelling) is None


def test_addresses_that_differ_beyond_ascii_stay_different() -> None:
    assert read_address("bo\u00df@corp.example") != read_address("boss@corp.example")
    assert read_address("dana@glo\u00df.example") != read_address("dana@gloss.example")


@given(st.text(max_size=30) | st.text(st.sampled_from("a@<>.,; \t\n\x00corp.example"), max_size=30))
def test_no_text_breaks_the_address_reader(spelling: str) -> None:
    address = read_address(spelling)
    if address is not None:
        local, _, domain = address.rpartition("@")
        assert local
        assert domain
        assert read_address(address) == address
        assert not any(char.isspace() or char in "<>,;" for char in address)
