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

function checkDependents({ spec: { document }, primary, dependents }: ResolvedController): Diagnostic[] {
  const files = new Names("dependent");
  const types = new Names("type");
  const ofPrimary = ["Dependents", "Reconciler", "ReconcileArguments"].map((suffix) => `${primary?.kind}${suffix}`);
  for (const name of [...IMPORTED, ...ofPrimary]) types.reserve(name);
  return dependents.flatMap(({ name, path }) => {
    const place = document.keyAt(path);
    const alike = files.add(name, name, place);
    if (alike.length > 0) return alike;
    return SUFFIXES.flatMap((suffix) => types.add(name + suffix, `dependent ${quote(name)}`, place)).slice(0, 1);
  });
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
