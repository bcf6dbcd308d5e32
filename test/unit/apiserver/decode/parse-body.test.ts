import { BodySyntaxError } from "#apiserver/errors/decode-errors.js";
import { parseJson, parseObjectBody, parseYaml } from "#apiserver/decode/body.js";
import { numberTextsIn } from "#apiserver/exact-numbers.js";
import { assert, suite } from "../../../support/suite.js";

const PROTOBUF = "application/vnd.kubernetes.protobuf";

const yaml = (text: string) => parseYaml(Buffer.from(text));

// One field of a message: a number below 16, and bytes or text shorter than 128.
function field(number: number, value: string | Buffer): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([Buffer.from([number * 8 + 2, bytes.length]), bytes]);
}

function protobufOf(kind: string, ...fields: Buffer[]): Buffer {
  const typeMeta = Buffer.concat([field(1, "v1"), field(2, kind)]);
  return Buffer.concat([Buffer.from("k8s\0"), field(1, typeMeta), field(2, Buffer.concat(fields))]);
}

suite("request body", (test) => {
  test("reads YAML 1.1 without timestamps and base-60 numbers", () => {
    const { value } = yaml("on: y\nport: 8080\nmode: 0644\ntime: 2024-01-01\nbase60: 1:30\nnothing:\n");
    assert.equal(value, { true: true, port: 8080, mode: 420, time: "2024-01-01", base60: "1:30", nothing: null });
  });

  test("keeps the spelling of JSON integers that are written as floats", () => {
    const text = String.raw`{"a":1.0,"b":[2,3e0,1.5],"c":"x:1.0,","d":{"__proto__":-1.0},"e\"":1,"f":"\u0000"}`;
    const value = parseJson(Buffer.from(text)).value as { a: number; b: number[]; c: string; d: object };
    assert.equal(value, JSON.parse(text));
    assert.equal([...(numberTextsIn(value) ?? [])], [["a", "1.0"]]);
    assert.equal([...(numberTextsIn(value.b) ?? [])], [[1, "3e0"]]);
    assert.equal([...(numberTextsIn(value.d) ?? [])], [["__proto__", "-1.0"]]);
    const plain = parseJson(Buffer.from('{"a":1,"b":"v1.0","c":1.5}')).value as object;
    assert.is(numberTextsIn(plain), undefined);
  });

  test("reports a duplicate YAML key with its line", () => {
    const { duplicates } = yaml("a: 1\nb:\n  size: 1\n  size: 2\n");
    assert.equal(duplicates(), ['line 4: key "size" already set in map']);
  });

  test("reports syntax errors with the messages of the Kubernetes parsers", () => {
    const texts = [() => parseJson(Buffer.from("")), () => parseJson(Buffer.from("{")), () => yaml("a: b: c")].map(
      (parse) => {
        try {
          parse();
        } catch (error) {
          assert.ok(error instanceof BodySyntaxError);
          return error.message;
        }
        return "was read";
      },
    );
    assert.equal(texts, [
      "unexpected end of JSON input",
      "unexpected end of JSON input",
      "yaml: mapping values are not allowed in this context",
    ]);
  });

  test("decodes a protobuf body of a known kind to JSON", () => {
    const entry = (key: string, value: string) => Buffer.concat([field(1, key), field(2, value)]);
    const metadata = Buffer.concat([field(1, "a"), field(11, entry("k", "v"))]);
    const body = protobufOf(
      "Secret",
      field(1, metadata),
      field(2, entry("x", "1")),
      field(2, entry("y", "2")),
      field(3, "Opaque"),
    );
    assert.equal(parseObjectBody(body, PROTOBUF).value, {
      kind: "Secret",
      apiVersion: "v1",
      metadata: { name: "a", labels: { k: "v" } },
      data: { x: "MQ==", y: "Mg==" },
      type: "Opaque",
    });
  });

  test("decodes protobuf wrapper types (Quantity, Time, IntOrString) and embedded messages", () => {
    const number = (at: number, value: number) => Buffer.from([at * 8, value]);
    const minusOne = Buffer.from([7 * 8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]);
    const container = Buffer.concat([
      field(1, "web"),
      field(8, field(2, Buffer.concat([field(1, "cpu"), field(2, field(1, "500m"))]))),
      field(
        10,
        Buffer.concat([field(1, field(2, field(2, Buffer.concat([number(1, 1), field(3, "http")])))), number(2, 0)]),
      ),
    ]);
    const volume = Buffer.concat([field(1, "v"), field(2, field(2, Buffer.alloc(0)))]);
    const metadata = Buffer.concat([field(1, "p"), minusOne, field(8, Buffer.alloc(0)), field(9, number(1, 60))]);
    const body = protobufOf(
      "Pod",
      field(1, metadata),
      field(2, Buffer.concat([field(1, volume), field(2, container)])),
    );
    assert.equal(parseObjectBody(body, PROTOBUF).value, {
      kind: "Pod",
      apiVersion: "v1",
      metadata: { name: "p", generation: -1, deletionTimestamp: "1970-01-01T00:01:00Z" },
      spec: {
        volumes: [{ name: "v", emptyDir: {} }],
        containers: [
          {
            name: "web",
            resources: { requests: { cpu: "500m" } },
            livenessProbe: { httpGet: { port: "http" }, initialDelaySeconds: 0 },
          },
        ],
      },
    });
  });

  test("rejects protobuf of an unknown kind and unknown media types", () => {
    for (const [body, type] of [
      [protobufOf("Gadget"), PROTOBUF],
      [Buffer.from("{}"), "text/plain"],
    ] as const) {
      assert.throws(() => parseObjectBody(body, type), /the body of the request was in an unknown format/);
    }
  });
});
