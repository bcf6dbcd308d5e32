/** How serious a broken rule is: only an error keeps the generator from writing. */
export type Severity = "error" | "warning";

/** What a user reads about a rule in `gen-operator explain`. */
export interface RulePage {
  readonly meaning: string;
  readonly remedy: string;
  /** The folder in fixtures/rejected/ of the repository with a project that triggers the rule. */
  readonly example?: string;
}

/** A part of a spec that has an `accept` field. */
export type Acceptor = "controller" | "dependent" | "eventSource" | "extraRule";

/** The definition of a rule. */
export interface RuleDefinition<S extends Severity | "varies"> {
  /** In kebab-case, as messages name it: `unknown-dependent`. */
  readonly id: string;
  /** `varies` if the check decides in each case. */
  readonly severity: S;
  /** The parts of a spec that can accept the warning with a reason. Default: none. */
  readonly acceptedBy?: readonly Acceptor[];
  readonly page: RulePage;
}

/** A rule of the generator: everything that does not depend on the project it is checked in. */
export interface Rule<S extends Severity | "varies" = Severity | "varies"> extends RuleDefinition<S> {
  readonly acceptedBy: readonly Acceptor[];
  /** Spread into each diagnostic of the rule. A rule whose severity varies leaves `severity` to the check. */
  readonly violation: S extends Severity ? { readonly severity: S; readonly rule: string } : { readonly rule: string };
}

/**
 * Defines a rule. Its definition is a constant in the `rules.ts` of the folder that checks it, and is listed in `explain/rule-registry.ts`.
 *
 * A `rules.ts` imports nothing but this file, so that `explain` and shell completion load no check.
 */
export function defineRule<const S extends Severity | "varies">(definition: RuleDefinition<S>): Rule<S> {
  const { id, severity, acceptedBy = [] } = definition;
  const violation = severity === "varies" ? { rule: id } : { severity, rule: id };
  return { ...definition, acceptedBy, violation: violation as Rule<S>["violation"] };
}
