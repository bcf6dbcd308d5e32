import { type Change, isVersionPart } from "./change.js";

/** Result of a check of crdify. Errors are breaking changes, warnings are compatible ones. */
export interface CrdifyResult {
  readonly name: string;
  readonly errors?: readonly string[];
  readonly warnings?: readonly string[];
}

/** The report of `crdify --output json` for one CRD. */
export interface CrdifyReport {
  readonly crdValidation?: readonly CrdifyResult[];
  readonly sameVersionValidation?: readonly {
    readonly version: string;
    readonly propertyComparisons: readonly {
      readonly property: string;
      readonly comparisonResults: readonly CrdifyResult[];
    }[];
  }[];
}

/**
 * Converts the changes of CRDs to reports of crdify (https://github.com/kubernetes-sigs/crdify), by CRD name. As in crdify, changes without a check
 * are reported as `unhandled`.
 */
export function crdifyReportOf(changes: readonly Change[]): { readonly [crd: string]: CrdifyReport } {
  const ofCrds = changes.filter(({ subject }) => !subject.startsWith("controller "));
  return Object.fromEntries(
    [...groupBy(ofCrds, ({ subject }) => subject.split(" ")[0] ?? "")].map(([crd, its]) => [crd, reportOf(its)]),
  );
}

function reportOf(changes: readonly Change[]): CrdifyReport {
  const isOfProperty = ({ subject, path }: Change) =>
    subject.includes(" ") && path !== undefined && !isVersionPart(path);
  const others = changes.filter((change) => !isOfProperty(change));
  const versions = [...groupBy(changes.filter(isOfProperty), ({ subject }) => subject.split(" ")[1] ?? "")];
  return {
    ...(others.length === 0 ? {} : { crdValidation: resultsOf(others) }),
    ...(versions.length === 0
      ? {}
      : {
          sameVersionValidation: versions.map(([version, its]) => ({
            version,
            propertyComparisons: [...groupBy(its, propertyOf)].map(([property, found]) => ({
              property,
              comparisonResults: resultsOf(found),
            })),
          })),
        }),
  };
}

/** Returns the property to which crdify assigns a change. A change of `required` belongs to the enclosing object. */
function propertyOf({ path = "", check }: Change): string {
  const property = `^.${path}`.replaceAll("[]", ".items").replaceAll(".*", ".additionalProperties");
  return check === "required" ? property.slice(0, property.lastIndexOf(".")) : property;
}

function resultsOf(changes: readonly Change[]): CrdifyResult[] {
  return [...groupBy(changes, ({ check }) => check ?? "unhandled")].map(([name, its]) => {
    const messages = (effect: Change["effect"]) => its.filter((each) => each.effect === effect).map(messageOf);
    const [errors, warnings] = [messages("breaking"), messages("compatible")];
    return { name, ...(errors.length > 0 ? { errors } : {}), ...(warnings.length > 0 ? { warnings } : {}) };
  });
}

function messageOf({ subject, path, message, check }: Change): string {
  const version = subject.split(" ")[1];
  const isOfVersion = version !== undefined && (path === undefined || isVersionPart(path));
  const isNamed = path !== undefined && (isOfVersion || version === undefined || check === "required");
  return [...(isOfVersion ? [version] : []), ...(isNamed ? [path] : []), message].join(": ");
}

function groupBy<Item>(items: readonly Item[], keyOf: (item: Item) => string): Map<string, Item[]> {
  const groups = new Map<string, Item[]>();
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]);
  return groups;
}
