import { proxyFromEnvironment } from "#runtime/client/connection.js";
import { assert, suite } from "../../../support/suite.js";

const proxyOf = (server: string, env: NodeJS.ProcessEnv) => proxyFromEnvironment(server, env);

suite("proxy of the environment", (test) => {
  test("is read from the variable of the scheme in either case, with http as the default scheme", () => {
    const env = { HTTPS_PROXY: "https://secure:1", http_proxy: "plain:2" };
    assert.equal([proxyOf("https://a", env), proxyOf("http://a", env)], ["https://secure:1", "http://plain:2"]);
    assert.is(proxyOf("https://a", { http_proxy: "plain:2" }), undefined);
    assert.is(proxyOf("https://a", { HTTPS_PROXY: "", https_proxy: "x:1" }), "http://x:1");
  });

  test("is never used for localhost or loopback addresses", () => {
    for (const host of ["localhost", "127.0.0.1", "127.3.4.5", "[::1]"])
      assert.is(proxyOf(`https://${host}:6443`, { HTTPS_PROXY: "proxy:1" }), undefined, host);
  });

  // The cases of golang.org/x/net/http/httpproxy.
  const excluded: [string, string, boolean][] = [
    ["*", "https://a.example", true],
    ["a.example", "https://a.example", true],
    ["A.example", "https://a.EXAMPLE", true],
    ["a.example", "https://b.a.example", true],
    ["a.example", "https://ba.example", false],
    [".a.example", "https://a.example", false],
    [".a.example", "https://b.a.example", true],
    ["*.a.example", "https://b.a.example", true],
    ["*.a.example", "https://a.example", false],
    ["a.example:443", "https://a.example", true],
    ["a.example:6443", "https://a.example", false],
    ["other, a.example:6443", "https://a.example:6443", true],
    ["10.0.0.1", "https://10.0.0.1", true],
    ["10.0.0.1:80", "https://10.0.0.1", false],
    ["10.0.0.0/8", "https://10.96.0.1:443", true],
    ["10.0.0.0/8", "https://11.96.0.1:443", false],
    ["10.0.0.0/99", "https://10.96.0.1:443", false],
    ["fd00::/8", "https://[fd00::1]", true],
    ["fd00::1", "https://[fd00::1]", true],
    ["[fd00::1]:6443", "https://[fd00::1]:6443", true],
    ["[fd00::1]:6443", "https://[fd00::1]", false],
    ["", "https://a.example", false],
  ];
  for (const [noProxy, server, isExcluded] of excluded)
    test(`is ${isExcluded ? "not " : ""}used for ${server} if NO_PROXY is "${noProxy}"`, () => {
      const expected = isExcluded ? undefined : "http://proxy:1";
      assert.is(proxyOf(server, { HTTPS_PROXY: "proxy:1", NO_PROXY: noProxy }), expected);
    });

  test("rejects schemes other than http and https without leaking the password", () => {
    const of = (proxy: string) => () => proxyOf("https://a", { HTTPS_PROXY: proxy });
    assert.throws(of("socks5://me:secret@proxy"), /^HTTPS_PROXY of the environment has the scheme "socks5"; only/);
    assert.throws(of("http://me:secret@"), (error: Error) => !error.message.includes("secret"));
  });
});
