import type { ServedType } from "../builtin/served-type.js";

// What a real server itself would act on, and this one does not: by `plural.group`. What a controller of another process does is not
// told: a server without controllers is what kube-apiserver is, too.
const KINDS: Readonly<Record<string, string>> = {
  "apiservices.apiregistration.k8s.io": "the embedded API server stores it and passes no request on",
};

/** Names what a kind asks of the server and the server does not do, for `Warning` headers. */
export function unevaluatedWarnings(type: ServedType): string[] {
  const ofKind = KINDS[`${type.plural}.${type.group}`];
  return ofKind === undefined ? [] : [`${type.kind}: ${ofKind}`];
}
