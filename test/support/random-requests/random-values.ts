// Values of random objects. There are few, so that those of two requests are often equal.
import fc, { type Arbitrary } from "../fast-check.js";

export const word = fc.constantFrom("a", "b", "c", "x");
export const count = fc.constantFrom(0, 1, 2, 3, 7);
export const words = fc.array(word, { maxLength: 3 });
export const map = fc.dictionary(word, word, { maxKeys: 2 });
export const intOrString = fc.constantFrom<unknown>(1, 0, "50%", "http", "1", "101%");
export const labels = { app: "web" };
export const container = { name: "web", image: "nginx:1" };

/** An object in which all members are optional. */
export function some(members: Record<string, Arbitrary<unknown>>): Arbitrary<object> {
  return fc.record(members, { requiredKeys: [], noNullPrototype: true });
}

const condition = some({
  status: fc.constantFrom("True", "False"),
  reason: fc.constantFrom("Why", "Other"),
  message: word,
});

export const conditions = fc.array(
  fc.tuple(fc.constantFrom("Ready", "Available"), condition).map(([type, rest]) => ({ type, status: "True", ...rest })),
  { maxLength: 2 },
);
