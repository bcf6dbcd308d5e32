import { httpRequestOf } from "#runtime/client/api-client.js";
import { assert, suite } from "../../../support/suite.js";
import { ConfigMap } from "../../../support/runtime/config-maps.js";

const CHARACTERS = Array.from({ length: 0x10000 }, (_, unit) => String.fromCharCode(unit));
// What YAML 1.1 takes for printable and for no line break (https://yaml.org/spec/1.1/#c-printable), but for halves of other characters.
const SAME_IN_YAML = /^[\t\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]*$/;

suite("write request body", (test) => {
  test("contains only characters that JSON and YAML readers read alike", () => {
    const data = Object.fromEntries(CHARACTERS.map((character) => [`${character}.`, character]));
    const write = { ref: { name: "a", namespace: "home" }, body: { metadata: { name: "a" }, data } };
    const { body = "" } = httpRequestOf(ConfigMap.definition, { verb: "apply", ...write });
    assert.equal(JSON.parse(body), { ...write.body, apiVersion: "v1", kind: "ConfigMap" });
    assert.equal([...body].filter((character) => !SAME_IN_YAML.test(character)).map(escape), []);
  });

  test("formats integers beyond 2^53 as the nearest int64, and bigints exactly", () => {
    const spec = {
      largest: 2 ** 63,
      least: -(2 ** 63),
      even: 2 ** 60,
      exact: 9007199254740993n,
      float: 1e21,
      text: "9007199254740993",
    };
    for (const verb of ["apply", "mergePatch", "update"] as const) {
      const { body = "" } = httpRequestOf(ConfigMap.definition, {
        verb,
        ref: { name: "a", namespace: "home" },
        body: { spec },
      });
      const numbers = [
        ...['"largest":9223372036854775807', '"least":-9223372036854775808', '"even":1152921504606846976'],
        ...['"exact":9007199254740993', '"float":1e+21', '"text":"9007199254740993"'],
      ];
      for (const number of numbers) assert.match(body, number);
    }
  });
});

function escape(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
