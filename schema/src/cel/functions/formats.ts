// The Kubernetes CEL library `format`: named formats that strings can be validated against.
import { hasFormat } from "../../strings/formats.js";
import { spendText } from "../budget.js";
import { optionalOf } from "./optional.js";
import { fieldOf, typesOf, valueOfKind, type FunctionsOf } from "../kubernetes-value.js";

type Check = (text: string) => boolean;

const LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const LABEL_1035 = /^[a-z]([-a-z0-9]*[a-z0-9])?$/;
const QUALIFIED = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;

/** Replaces the trailing dash of a prefix of several characters by a letter, because the generated part of the name follows it. */
const withEnd = (prefix: string) => (prefix.length > 1 ? prefix.replace(/[^]-$/, "a") : prefix);
const isSubdomain: Check = (text) => text.length <= 253 && text.split(".").every((label) => LABEL.test(label));

const CHECKS: { readonly [name: string]: Check } = {
  dns1123Label: (text) => text.length <= 63 && LABEL.test(text),
  dns1123Subdomain: isSubdomain,
  dns1035Label: (text) => text.length <= 63 && LABEL_1035.test(text),
  dns1123LabelPrefix: (text) => text.length <= 63 && LABEL.test(withEnd(text)),
  dns1123SubdomainPrefix: (text) => isSubdomain(withEnd(text)),
  dns1035LabelPrefix: (text) => text.length <= 63 && LABEL_1035.test(withEnd(text)),
  qualifiedName: isQualifiedName,
  labelValue: (text) => text === "" || (text.length <= 63 && QUALIFIED.test(text)),
  uri: (text) => hasFormat(text, "uri") === true,
  uuid: (text) => hasFormat(text, "uuid") === true,
  byte: (text) => hasFormat(text, "byte") === true,
  date: (text) => hasFormat(text, "date") === true,
  datetime: (text) => hasFormat(text, "date-time") === true,
};

/** `format.dns1123Label()` and the other named formats, and `validate`. */
export const formatFunctions: FunctionsOf = (library) => {
  const { celFunc, celMethod } = library;
  const { STRING, MAP } = typesOf(library);
  const format = (name: string) => valueOfKind(library, "format", { name });
  return [
    ...Object.keys(CHECKS).map((name) => celFunc(`format.${name}`, [], MAP, () => format(name))),
    celFunc("format.named", [STRING], MAP, (name) =>
      optionalOf(library, Object.hasOwn(CHECKS, name) ? format(name) : undefined),
    ),
    celMethod("validate", MAP, [STRING], MAP, function (text) {
      spendText(text);
      const name = fieldOf<string>(this, "format", "name");
      return optionalOf(library, CHECKS[name]?.(text) === true ? undefined : [`must be of format ${name}`]);
    }),
  ];
};

function isQualifiedName(text: string): boolean {
  const slash = text.indexOf("/");
  const name = text.slice(slash + 1);
  return name.length <= 63 && QUALIFIED.test(name) && (slash === -1 || isSubdomain(text.slice(0, slash)));
}
