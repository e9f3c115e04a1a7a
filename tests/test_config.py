import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from logd.config import (
    EDGE,
    GIB,
    MIB,
    OPTIONS,
    Address,
    BadConfig,
    Config,
    Connection,
    describe,
    flag,
    load,
    load_connection,
    parse_address,
)

ROOT = Path(__file__).parents[1]


def options(**flags: object) -> Config:
    return load({"data": "/data", **flags}, {})


def options_of(environ: Mapping[str, str]) -> Config:
    return load({"data": "/data"}, environ)


def test_only_the_data_directory_has_to_be_given() -> None:
    assert options() == Config(data=Path("/data"))
    with pytest.raises(BadConfig, match="--data, LOGD_DATA"):
        load({}, {})


def test_a_flag_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "logd.toml"
    file.write_text(
        "cache_bytes = 1\nquery_threads = 1\nchunk_entries = 100\ntail_bytes = 20000000"
    )
    environ = {"LOGD_CACHE_BYTES": "2", "LOGD_QUERY_THREADS": "2"}
    config = load({"data": "d", "cache_bytes": "3", "tail_bytes": None}, environ, file)
    assert (config.cache_bytes, config.query_threads, config.chunk_entries) == (3, 2, 100)
    assert config.tail_bytes == 20_000_000
    assert config.segment_seconds == 86_400


def test_a_variable_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "logd.toml"
    file.write_text('data = "/from/file"')
    assert load({}, {"LOGD_CONFIG": str(file)}).data == Path("/from/file")


def test_the_edge_profile_gives_way_to_what_is_said() -> None:
    config = options(profile="edge", cache_bytes="12345")
    assert config.cache_bytes == 12_345
    assert config.tail_bytes == EDGE["tail_bytes"]
    assert config.tail_bytes < options().tail_bytes


def test_every_value_of_the_edge_profile_is_an_option_and_valid() -> None:
    texts = {name: str(value) for name, value in EDGE.items()}
    assert options(**texts) == load({"data": "/data", **texts}, {})


@pytest.mark.parametrize("name", OPTIONS)
def test_each_option_has_a_description(name: str) -> None:
    assert describe(name)
    assert flag(name).startswith("--")


def test_the_example_file_names_every_option_with_its_default(tmp_path: Path) -> None:
    example = (ROOT / "systemd" / "logd.toml").read_text()
    options_in_it = re.sub(r"^# (\w+ = )", r"\1", example, flags=re.MULTILINE)
    keys = re.findall(r"^(\w+) = ", options_in_it, flags=re.MULTILINE)
    assert sorted(keys) == sorted(OPTIONS)
    file = tmp_path / "logd.toml"
    file.write_text(options_in_it)
    expected = Config(
        data=Path("/var/lib/logd"),
        tls_cert=Path("/etc/logd/cert.pem"),
        tls_key=Path("/etc/logd/key.pem"),
    )
    assert load({}, {}, file) == expected


def test_the_example_file_as_it_is_changes_nothing() -> None:
    assert load({"data": "d"}, {}, ROOT / "systemd" / "logd.toml") == Config(data=Path("d"))


def test_an_unknown_key_is_an_error_with_file_and_hint(tmp_path: Path) -> None:
    file = tmp_path / "logd.toml"
    file.write_text("cache_byte = 1")
    with pytest.raises(BadConfig) as error:
        load({"data": "d"}, {}, file)
    assert str(error.value) == f"{file}: unknown key 'cache_byte' (did you mean 'cache_bytes'?)"


def test_an_unknown_variable_is_an_error_with_hint() -> None:
    with pytest.raises(BadConfig) as error:
        options_of({"LOGD_LISTN": "x", "HOME": "/root"})
    assert str(error.value) == "LOGD_LISTN: unknown variable (did you mean 'LOGD_LISTEN'?)"


def test_variables_of_the_commands_are_not_the_daemons_concern() -> None:
    theirs = {"LOGD_URL": "http://x", "LOGD_KEY": "k", "LOGD_KEY_FILE": "f", "LOGD_PROJECT": "p"}
    assert options_of(theirs) == options_of({})


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("LOGD_CACHE_BYTES", "64MB"),
        ("LOGD_CACHE_BYTES", "-1"),
        ("LOGD_CHUNK_ENTRIES", "65537"),
        ("LOGD_QUERY_THREADS", "0"),
        ("LOGD_QUERY_THREADS", "2.5"),
        ("LOGD_STALL_TIMEOUT_SECONDS", "0"),
        ("LOGD_STALL_TIMEOUT_SECONDS", "nan"),
        ("LOGD_INSECURE_HTTP", "maybe"),
        ("LOGD_DURABILITY", "sometimes"),
        ("LOGD_LOG_LEVEL", "loud"),
        ("LOGD_PROFILE", "huge"),
        ("LOGD_DATA", ""),
        ("LOGD_LISTEN", ""),
        ("LOGD_TLS_CERT", ""),
        ("LOGD_TLS_CERT", "~nobody-of-that-name/cert.pem"),
        ("LOGD_DATA", "a\0b"),
    ],
)
def test_a_bad_value_is_refused_and_its_variable_named(variable: str, text: str) -> None:
    with pytest.raises(BadConfig) as error:
        load({}, {"LOGD_DATA": "d", variable: text})
    assert error.value.where == variable


def test_a_bad_value_is_shown_with_what_there_is_to_choose(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="'64MB': Expected `int`"):
        options(cache_bytes="64MB")
    with pytest.raises(BadConfig, match="'warn' is not one of debug, info, warning, error"):
        options_of({"LOGD_LOG_LEVEL": "warn"})
    file = tmp_path / "logd.toml"
    file.write_text("durability = true")
    with pytest.raises(BadConfig, match="True is not one of commit, interval"):
        load({"data": "d"}, {}, file)


@pytest.mark.parametrize(
    "line",
    ['cache_bytes = "1"', "insecure_http = 1", "listen = 8514", "data = 1", "listen = []",
     'listen = ["127.0.0.1:1", 2]', "log_level = true"],
)  # fmt: skip
def test_a_value_of_another_type_is_refused_and_its_key_named(tmp_path: Path, line: str) -> None:
    file = tmp_path / "logd.toml"
    file.write_text(line)
    with pytest.raises(BadConfig) as error:
        load({}, {}, file)
    assert error.value.where == f"{file}: {line.partition(' ')[0]}"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match=r"nowhere\.toml: No such file"):
        load({}, {}, tmp_path / "nowhere.toml")
    broken = tmp_path / "broken.toml"
    broken.write_text("data = ")
    with pytest.raises(BadConfig, match=r"broken\.toml: not TOML"):
        load({}, {}, broken)
    broken.write_bytes(b"# \xff")
    with pytest.raises(BadConfig, match="not UTF-8"):
        load({}, {}, broken)


@pytest.mark.parametrize("text", ["true", "1", "false", "0"])
def test_a_switch_can_be_set_by_a_variable(text: str) -> None:
    assert options_of({"LOGD_INSECURE_HTTP": text}).insecure_http is (text in ("true", "1"))


def test_several_addresses_in_a_variable_a_flag_and_a_file(tmp_path: Path) -> None:
    both = (Address("127.0.0.1", 1), Address("::1", 2))
    assert options_of({"LOGD_LISTEN": "127.0.0.1:1, [::1]:2"}).listen == both
    assert options(listen=["127.0.0.1:1", "[::1]:2"]).listen == both
    file = tmp_path / "logd.toml"
    file.write_text('data = "d"\nlisten = ["127.0.0.1:1", "[::1]:2"]')
    assert load({}, {}, file).listen == both


@pytest.mark.parametrize(
    "text",
    ["", "8514", ":8514", "localhost", "localhost:", "::1:8514", "h:http", "h:65536", "h:-1",
     "h:\u0661"],
)  # fmt: skip
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"HOST:PORT|port"):
        parse_address(text)


@pytest.mark.parametrize("text", ["127.0.0.1:8514", "[::1]:0", "logs.example.com:443"])
def test_an_address_is_written_as_it_is_read(text: str) -> None:
    assert str(parse_address(text)) == text


@pytest.mark.parametrize("address", ["0.0.0.0:8514", "[::]:8514", "192.0.2.1:80", "example.com:80"])
def test_plain_http_beyond_loopback_has_to_be_asked_for(address: str) -> None:
    with pytest.raises(BadConfig, match="insecure_http"):
        options(listen=[address])
    assert options(listen=[address], insecure_http=True).insecure_http
    assert options(listen=[address], tls_cert="c.pem", tls_key="k.pem").tls_key == Path("k.pem")


@pytest.mark.parametrize("address", ["127.0.0.1:1", "127.8.9.1:1", "[::1]:1", "localhost:1"])
def test_loopback_needs_no_tls(address: str) -> None:
    assert options(listen=[address]).listen[0].is_loopback


def test_certificate_and_key_go_together() -> None:
    with pytest.raises(BadConfig, match="go together"):
        options(tls_cert="c.pem")
    with pytest.raises(BadConfig, match="go together"):
        options(tls_key="k.pem")


@pytest.mark.parametrize(
    ("name", "value"),
    [("body_memory_bytes", 1 * MIB), ("segment_bytes", 1 * MIB), ("tail_bytes", 1 * MIB)],
)
def test_budgets_hold_at_least_one_of_what_they_are_for(name: str, value: int) -> None:
    with pytest.raises(BadConfig) as error:
        options(**{name: str(value)})
    assert error.value.where == flag(name)


def test_the_largest_body_is_bounded() -> None:
    with pytest.raises(BadConfig):
        options(max_body_bytes=str(GIB + 1))


def test_a_connection_comes_from_flags_before_variables(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("ldk_file\n")
    environ = {"LOGD_URL": "http://env", "LOGD_KEY": "ldk_env", "LOGD_PROJECT": "p"}
    assert load_connection({}, environ) == Connection("http://env", "ldk_env", "p")
    assert load_connection({"key_file": str(file)}, environ).key == "ldk_file"
    assert load_connection({"url": "https://flag/"}, environ).url == "https://flag"
    assert load_connection({}, {"LOGD_KEY_FILE": str(file)}).key == "ldk_file"
    assert load_connection({"key": "k"}, {}) == Connection("http://127.0.0.1:8514", "k", None)


def test_a_connection_needs_a_key_and_an_http_address(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="--key-file"):
        load_connection({}, {})
    with pytest.raises(BadConfig, match="LOGD_URL"):
        load_connection({"key": "k"}, {"LOGD_URL": "localhost:8514"})
    empty = tmp_path / "empty"
    empty.write_text("one two")
    with pytest.raises(BadConfig, match="one key"):
        load_connection({"key_file": str(empty)}, {})


def test_a_key_is_in_no_repr() -> None:
    assert "ldk_secret" not in repr(Connection("http://x", "ldk_secret", None))
