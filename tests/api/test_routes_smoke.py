from conftest import Daemon


async def test_smoke(daemon: Daemon) -> None:
    r = await daemon.http.get("/livez")
    assert r.status_code == 200, r.text
    print(r.headers)
    r = await daemon.call("GET", "/v1/orgs/mine", daemon.admin)
    print(r.text)
    r = await daemon.call("POST", "/v1/ingest", daemon.key, json=[daemon.entry()])
    print(r.text, r.headers)
    r = await daemon.call("GET", f"/v1/projects/{daemon.project}/logs", daemon.key)
    print(r.text, r.headers)
    r = await daemon.call("GET", "/v1/openapi.json")
    print(r.text[:3000])
    r = await daemon.call("GET", "/nope")
    print(r.text, r.headers)
