// The expressions that select devices, and what these see.
import { type VariableType, type Variables, checkText } from "../../../errors/expression-problem.js";
import { type FieldError, invalidError, requiredError, tooLongError } from "../../../errors/field-error.js";
import { type JsonObject, objectAt } from "../../../json.js";
import { objectsAt, textAt } from "../../read-path.js";
import { checkLimited } from "../field-rules.js";

const MAX_LENGTH = 10 * 1024;
const MAX_SELECTORS = 32;
const TEXT: VariableType = { kind: "string" };

function byDomain(element: VariableType): VariableType {
  return { kind: "map", key: TEXT, element: { kind: "map", key: TEXT, element } };
}

const FIELDS: { readonly [name: string]: VariableType } = {
  driver: TEXT,
  allowMultipleAllocations: { kind: "bool" },
  attributes: byDomain({ kind: "dyn" }),
  capacity: byDomain({ kind: "opaque", name: "kubernetes.Quantity" }),
};
const VARIABLES: Variables = {
  device: {
    kind: "object",
    name: "kubernetes.DRADevice",
    field: (name) => (Object.hasOwn(FIELDS, name) ? FIELDS[name] : undefined),
  },
};

/** Checks the selectors of devices of a class or a request. */
export function checkSelectors(path: string, holder: JsonObject): FieldError[] {
  return checkLimited(path, { items: objectsAt(holder, "selectors"), max: MAX_SELECTORS }, (selectors) =>
    selectors.flatMap((selector, index) => {
      const at = `${path}[${index}].cel`;
      const cel = objectAt(selector, "cel");
      return cel === undefined ? [requiredError(at)] : checkSelector(`${at}.expression`, textAt(cel, "expression"));
    }),
  );
}

function checkSelector(field: string, text: string): FieldError[] {
  if (Buffer.byteLength(text) > MAX_LENGTH) return [tooLongError(field, MAX_LENGTH)];
  const checked = checkText(text, VARIABLES);
  if ("unread" in checked) return [];
  if ("problem" in checked) return [invalidError(field, text, checked.problem)];
  if (checked.type === "bool" || checked.type === "dyn") return [];
  return [invalidError(field, text, `must evaluate to bool or the unknown type, not ${checked.type}`)];
}
