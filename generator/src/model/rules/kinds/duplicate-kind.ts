import { formatPosition, quote, type Diagnostic } from "../../../diagnostic.js";
import type { Crd } from "../../../input/crd/crd.js";

/** Finds kinds that two CRDs define, or whose files would have one name. */
export function checkDuplicateKind(crds: readonly Crd[]): Diagnostic[] {
  const first = new Map<string, Crd>();
  return crds.flatMap((crd): Diagnostic[] => {
    const key = `${plain(crd.kind)}.${crd.group}`;
    const other = first.get(key);
    if (other === undefined) {
      first.set(key, crd);
      return [];
    }
    const reason = crd.kind.toLowerCase() === other.kind.toLowerCase() ? "case" : "hyphens";
    const where = formatPosition(other.placeOf().position);
    const message =
      other.kind === crd.kind
        ? `${crd.kind} of ${crd.group} is defined twice, first at ${where}`
        : `kind ${quote(crd.kind)} differs from ${quote(other.kind)} only in ${reason}, first at ${where}`;
    return [{ severity: "error", rule: "duplicate-kind", message, ...crd.placeOf() }];
  });
}

function plain(kind: string): string {
  return kind.toLowerCase().replaceAll("-", "");
}
