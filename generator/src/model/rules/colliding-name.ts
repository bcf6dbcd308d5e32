import { formatPosition, quote, type Diagnostic } from "../../diagnostic.js";
import type { Place } from "../../input/yaml-document.js";
import type { ResolvedController, Rule } from "../resolved-project.js";

/** What the names of the types of a dependent end in. */
const SUFFIXES = ["Secondary", "Arguments", "Desired", "Condition", "ConditionArguments"];

/** What the generated types of a controller import. */
const IMPORTED = [
  "Condition",
  "ConditionArguments",
  "DependentArguments",
  "Desired",
  "ReconcileArguments",
  "Reconciler",
];

/**
 * Finds names from which the same file or type would be made.
 *
 * Compares without case and separators: some file systems do not tell `fooBar` from `foobar`, and neither do people.
 */
export const checkCollidingName: Rule = ({ controllers }) => {
  const folders = new Names("controller");
  return controllers.flatMap((controller) => {
    const { spec } = controller;
    const place = spec.document.valueAt(["metadata", "name"]);
    return [...folders.add(spec.name, spec.name, place), ...checkDependents(controller)];
  });
};

function checkDependents({
  spec: { document, primary: primarySpec },
  primary,
  dependents,
}: ResolvedController): Diagnostic[] {
  const files = new Names("dependent");
  const types = new Names("type");
  for (const name of IMPORTED) types.reserve(name);
  const field = primarySpec.crd === undefined ? "resource" : "crd";
  const kinds = new Map(
    [
      { resource: primary, place: document.valueAt(["spec", "primary", field]) },
      ...dependents.map(({ resource, path }) => ({ resource, place: document.valueAt([...path, "resource"]) })),
    ].flatMap(({ resource, place }) => (resource === undefined ? [] : [[resource.kind, place] as const])),
  );
  const diagnostics: Diagnostic[] = [];
  for (const [kind, place] of kinds)
    for (const name of [kind, `${kind}Input`]) diagnostics.push(...types.add(name, `kind ${quote(kind)}`, place));
  if (primary !== undefined)
    for (const suffix of ["Dependents", "Reconciler", "ReconcileArguments"]) types.reserve(primary.kind + suffix);
  for (const { name, path } of dependents) {
    const place = document.keyAt(path);
    const alike = files.add(name, name, place);
    diagnostics.push(...alike);
    if (alike.length > 0) continue;
    const collisions = SUFFIXES.flatMap((suffix) => types.add(name + suffix, `dependent ${quote(name)}`, place));
    diagnostics.push(...collisions.slice(0, 1));
  }
  return diagnostics;
}

/** The names that were used so far for one kind of thing. */
class Names {
  readonly #what: string;
  readonly #used = new Map<string, { name: string; user: string; place?: Place }>();

  constructor(what: string) {
    this.#what = what;
  }

  reserve(name: string): void {
    this.#used.set(plain(name), { name, user: "generated code" });
  }

  add(name: string, user: string, place: Place): Diagnostic[] {
    const other = this.#used.get(plain(name));
    if (other === undefined) {
      this.#used.set(plain(name), { name, user, place });
      return [];
    }
    // The same name twice is reported as such.
    if (other.user === user) return [];
    const first = other.place === undefined ? "" : `, first at ${formatPosition(other.place.position)}`;
    const message =
      this.#what === "type"
        ? `${user} needs another name: the type ${capital(name)} belongs to ${other.user}${first}`
        : `${this.#what} ${quote(name)} differs from ${quote(other.name)} only in case and separators${first}`;
    return [{ severity: "error", rule: "colliding-name", message, ...place }];
  }
}

function plain(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, "");
}

function capital(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}
