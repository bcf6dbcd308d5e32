/** The arguments of a reconciler that runs its workflow itself: no run came before, and the context can do one. */
export type Explicit<Arguments extends { readonly context: unknown }, Workflow> = Omit<
  Arguments,
  "context" | "workflow"
> & { readonly context: { readonly workflow: Workflow } & Arguments["context"]; readonly workflow: never };

/** A reconciler that runs its workflow itself. */
export type ExplicitReconciler<Reconciler, Workflow> = {
  [Name in keyof Reconciler]: Name extends "reconcile" | "cleanup"
    ? Reconciler[Name] extends
        ((args: infer Arguments extends { readonly context: unknown }) => infer Result) | undefined
      ? (args: Explicit<Arguments, Workflow>) => Result
      : never
    : Reconciler[Name];
};
