/**
 * The arguments of a function of the user's whose context gives less of some resources than their classes say: `Lookups` has what
 * `secondary` and `secondaries` return for these classes.
 */
export type Narrowed<Arguments extends { readonly context: unknown }, Lookups> = Omit<Arguments, "context"> & {
  // The first that fits a call wins.
  readonly context: Lookups & Arguments["context"];
};

/** A reconciler whose functions are called with narrowed arguments. */
export type NarrowedReconciler<Reconciler, Lookups> = {
  [Name in keyof Reconciler]: Reconciler[Name] extends
    ((args: infer Arguments extends { readonly context: unknown }) => infer Result) | undefined
    ? (args: Narrowed<Arguments, Lookups>) => Result
    : Reconciler[Name];
};

/** The arguments of a reconciler that runs its workflow itself: no run came before, and the context can do one. */
export type Explicit<Arguments extends { readonly context: unknown }, Workflow> = Omit<
  Narrowed<Arguments, { readonly workflow: Workflow }>,
  "workflow"
> & { readonly workflow: never };

/** A reconciler that runs its workflow itself. */
export type ExplicitReconciler<Reconciler, Workflow> = {
  [Name in keyof Reconciler]: Name extends "reconcile" | "cleanup"
    ? Reconciler[Name] extends
        ((args: infer Arguments extends { readonly context: unknown }) => infer Result) | undefined
      ? (args: Explicit<Arguments, Workflow>) => Result
      : never
    : Reconciler[Name];
};
