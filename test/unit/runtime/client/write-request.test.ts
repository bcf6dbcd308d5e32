import { requestOf } from "#runtime/client/write-request.js";
import { assert, suite } from "../../../support/suite.js";
import { ConfigMap } from "../../../support/runtime/config-maps.js";

const CHARACTERS = Array.from({ length: 0x10000 }, (_, unit) => String.fromCharCode(unit));
// What YAML 1.1 takes for printable and for no line break (https://yaml.org/spec/1.1/#c-printable), but for halves of other characters.
const SAME_IN_YAML = /^[\t\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]*$/;

suite("the body of a write", (test) => {
  test("of any characters means the same to readers of JSON and of YAML, as that of an apply is read", () => {
    const data = Object.fromEntries(CHARACTERS.map((character) => [`${character}.`, character]));
    const write = { ref: { name: "a", namespace: "home" }, body: { metadata: { name: "a" }, data } };
    const { body = "" } = requestOf(ConfigMap.definition, { verb: "apply", ...write });
    assert.equal(JSON.parse(body), { ...write.body, apiVersion: "v1", kind: "ConfigMap" });
    assert.equal([...body].filter((character) => !SAME_IN_YAML.test(character)).map(escape), []);
  });
});

function escape(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
