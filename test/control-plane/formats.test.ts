// The formats of texts and the classes of patterns, beside what a real API server takes.
import { waitFor } from "#apiserver/wait-for.js";
import { findPatternProblem, hasFormat } from "@gen-operator/schema";
import { apiRequest, apiRequestOrThrow } from "../support/api/api-request.js";
import { crdWith } from "../support/crds/crd-changes.js";
import { borrowControlPlane } from "../support/machine/borrow-control-plane.js";
import { assert, shared, suite } from "../support/suite.js";

const TEXTS: { readonly [format: string]: readonly string[] } = {
  ipv4: ["1.2.3.4", "01.2.3.4", "1.2.3", "1.2.3.4/8", "::1", "::ffff:1.2.3.4"],
  ipv6: ["::1", "::", "fe80::1%eth0", "1.2.3.4", "::ffff:1.2.3.4", "::ffff:0102:0304"],
  cidr: ["1.2.3.4/8", "::ffff:1.2.3.4/104", "::/0", "1.2.3.4/33", "01.2.3.4/8", "1.2.3.4/08"],
  uri: [
    ...["ftp:", "ftp:x", "x:", "1:", "a", "/", "//a", "*", "?a", "#a", "mailto:a@b", "HTTP://a", "http:///", "http://"],
    ...["http://a/%zz", "http://a/%41", "/a%zz", "http://a/#%zz", "http://a?%zz", "http://%41/"],
    ...["/a b", "http://a b", "http://[::1", "http://a:99x", "http://a\u0001"],
  ],
  byte: ["", "YQ==", "YQ=", "YQ", "Y Q==", "Y-_=", "YR==", "\n", "YQ==\n", "YW\nI=", "YW\r\nI=", "\nYWI="],
  date: ["2026-01-01", "2026-02-30", "2026-1-1", "2024-02-29"],
  "date-time": [
    ...["2026-01-01T00:00:00Z", "2026-01-01t00:00:00z", "2026-01-01T24:00:00Z", "2026-01-01 00:00:00Z"],
    ...["2026-01-01T00:00:00", "2026-01-01T00:00:00.1+01:00", "2026-01-01T23:59:60Z", "2026-01-01T00:00:00+24:00"],
  ],
  duration: ["", "1", "1s", "1 s", "1h30m", "-1s", "1d", "1 day", "1w2d", "1 µs", "1.5h", "P1D", " 1s", "1seconds"],
  email: ["a@b", "a@b.c", "A <a@b>", "<a@b>", "a", "a@", "@b", '"a b"@c', "a@b c"],
  hostname: ["", "a", "a.b", "a-", "-a", "A.com", "a_b", "xn--a", "é.com", "a..b", "a.", "1.2"],
  mac: ["00:00:00:00:00:01", "00-00-00-00-00-01", "0000.0000.0001", "0:0:0:0:0:1"],
  uuid: ["123e4567-e89b-12d3-a456-426614174000", "123e4567e89b12d3a456426614174000", "urn:uuid:a"],
  hexcolor: ["#fff", "fff", "#FFFFFF", "#ffff"],
  creditcard: ["4111111111111111", "4111 1111 1111 1111", "1"],
};
const PATTERNS = [
  ...["\\p{Greek}", "\\p{greek}", "\\p{^Greek}", "\\p{Emoji}", "[\\p{Emoji}]", "\\p{Lowercase}", "\\p{Script=Greek}"],
  ...[
    "\\p{Letter}",
    "\\p{lowercase_letter}",
    "\\p{ l }",
    "\\p{L}",
    "\\pN",
    "\\p{Any}",
    "\\p{Nothing}",
    "\\\\p{x",
    "\\Q\\p{x}\\E",
  ],
  ...["(?<n>a)", "(?P<n>a)", "(?=a)", "\\z", "\\Z", "\\C", "\\h", "a{1001}", "(a{10}){101}", "[[:word:]]", "[[:x:]]"],
];

suite("string formats on kube-apiserver", (test) => {
  const plane = shared(async () => {
    const started = await borrowControlPlane();
    const formats = Object.keys(TEXTS).map((format, index) => [`f${index}`, { type: "string", format }] as const);
    const spec = { type: "object", properties: Object.fromEntries(formats) };
    const path = "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    await apiRequestOrThrow(started, path, { body: crdWith({ type: "object", properties: { spec } }) });
    const list = "GET /apis/example.com/v1/namespaces/default/gadgets";
    await waitFor("the kind is served", async () => (await apiRequest(started, list)).status === 200);
    return started;
  });

  for (const [index, [format, texts]] of Object.entries(TEXTS).entries())
    test(
      `accept the same strings of format ${format} as hasFormat`,
      async () => {
        const server = await plane();
        for (const text of texts) {
          const spec = { [`f${index}`]: text };
          const body = { apiVersion: "example.com/v1", kind: "Gadget", metadata: { name: "a" }, spec };
          const path = "POST /apis/example.com/v1/namespaces/default/gadgets?dryRun=All";
          const { status } = await apiRequest(server, path, { body });
          assert.is(hasFormat(text, format) !== false, status === 201, JSON.stringify(text));
        }
      },
      { timeoutMs: 60_000 },
    );

  test(
    "accept the same patterns as findPatternProblem",
    async () => {
      const server = await plane();
      for (const pattern of PATTERNS) {
        const spec = { type: "object", properties: { f: { type: "string", pattern } } };
        const body = crdWith({ type: "object", properties: { spec } }, { plural: "others", kind: "Other" });
        const path = "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All";
        const { status } = await apiRequest(server, path, { body });
        assert.is(findPatternProblem(pattern) === undefined, status === 201, pattern);
      }
    },
    { timeoutMs: 60_000 },
  );
});
