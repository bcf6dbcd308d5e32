import { readContinueToken, writeContinueToken } from "#apiserver/read/list.js";
import fc from "../../../support/fast-check.js";
import { assert, suite } from "../../../support/suite.js";

const encode = (content: unknown) => Buffer.from(JSON.stringify(content)).toString("base64url");

suite("continue token", (test) => {
  test("resumes directly after the last key", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1 }), fc.stringMatching(/^[a-z0-9/.-]+$/), (revision, lastKey) => {
        const token = readContinueToken(writeContinueToken({ revision, lastKey }));
        assert.is(token.revision, revision);
        assert.ok(token.startKey > lastKey);
        assert.ok(token.startKey < `${lastKey}\u0001`);
      }),
    );
  });

  test("has the format of Kubernetes", () => {
    const text = Buffer.from(writeContinueToken({ revision: 123, lastKey: "default/name" }), "base64url").toString();
    assert.is(text, '{"v":"meta.k8s.io/v1","rv":123,"start":"/default/name\\u0000"}');
  });

  const broken: [token: string, text: string][] = [
    ["!", "illegal base64 data at input byte 0"],
    ["x", "illegal base64 data at input byte 0"],
    [
      encode({ v: "meta.k8s.io/v2", rv: 1, start: "/a" }),
      "server does not recognize this encoded version meta.k8s.io/v2",
    ],
    [
      encode({ v: "meta.k8s.io/v1", rv: 0, start: "/a" }),
      "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
    ],
    [encode({ v: "meta.k8s.io/v1", rv: 1, start: "" }), "encoded start key empty (version meta.k8s.io/v1)"],
  ];
  for (const [token, text] of broken) {
    test(`is rejected if malformed: ${token}`, () => {
      assert.throws(
        () => readContinueToken(token),
        (error: Error) => error.message.endsWith(text),
      );
    });
  }
});
