// Selectors in questions about rights that are not understood: they are left out, and the answer says so.
import { isSelectorOperator } from "../builtin/rules/field-rules.js";
import { arrayAt, isObject, objectAt, stringAt, type JsonObject } from "../json.js";
import { checkSelectorSyntax } from "../read/selectors.js";

/** Says which selectors of a question are ignored; undefined if none is. */
export function ignoredSelectors(attributes: JsonObject | undefined): string | undefined {
  const texts = ["fieldSelector", "labelSelector"].flatMap((name) => {
    const ignored = ignoredPart(name, objectAt(attributes, name) ?? {});
    return ignored === undefined ? [] : [`spec.resourceAttributes.${name} ${ignored} due to parse error`];
  });
  return texts.length === 0 ? undefined : texts.join("; ");
}

function ignoredPart(name: string, selector: JsonObject): "ignored" | "partially ignored" | undefined {
  const raw = stringAt(selector, "rawSelector") ?? "";
  if (raw !== "") return isReadable(name, raw) ? undefined : "ignored";
  const requirements = (arrayAt(selector, "requirements") ?? []).filter(isObject);
  const isUnderstood = name === "labelSelector" ? isLabelRequirement : isFieldRequirement;
  const understood = requirements.filter(isUnderstood).length;
  if (understood === requirements.length) return undefined;
  return understood === 0 ? "ignored" : "partially ignored";
}

function isReadable(name: string, selector: string): boolean {
  try {
    checkSelectorSyntax({ labelSelector: "", fieldSelector: "", [name]: selector });
    return true;
  } catch {
    return false;
  }
}

function isLabelRequirement({ operator = "" }: JsonObject): boolean {
  return isSelectorOperator(operator);
}

// Of fields one value can be asked for.
function isFieldRequirement(requirement: JsonObject): boolean {
  const isOfValues = ["In", "NotIn"].includes(String(requirement["operator"]));
  return isOfValues && arrayAt(requirement, "values")?.length === 1;
}
