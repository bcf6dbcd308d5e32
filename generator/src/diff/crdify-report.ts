import { type Change, isVersionPart } from "./change.js";

/** What a check of crdify found. Errors are breaking changes, and warnings compatible ones. */
export interface CrdifyResult {
  readonly name: string;
  readonly errors?: readonly string[];
  readonly warnings?: readonly string[];
}

/** The report of `crdify --output json` on one CRD. */
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
 * Returns the changes of CRDs as the reports of crdify (https://github.com/kubernetes-sigs/crdify), by the names of the CRDs. What crdify has no
 * check for is `unhandled`, as it is there.
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

/** Returns the property that crdify assigns a change to: a new required field is a matter of the object around it. */
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
