import type * as codegen from "@gen-operator/runtime/codegen";
import type * as runtime from "@gen-operator/runtime";

/** The module that generated code imports: the runtime's door for it. */
export const codegenModule = "@gen-operator/runtime/codegen";

/** The module that the user's code imports, and generated code for the built-in conditions. */
export const runtimeModule = "@gen-operator/runtime";

/** Values that generated code may import from the runtime; renaming one there fails the build here. */
export const runtimeValues = [
  "createResource",
  "defineController",
  "defineResource",
  "defineWorkflow",
  "isResource",
  "parseResource",
] as const satisfies readonly (keyof typeof codegen)[];

// `keyof typeof` sees values only, so types are named in an object type.
interface RuntimeTypes {
  Condition: codegen.Condition<never, never>;
  ConditionArguments: codegen.ConditionArguments<never, never>;
  ControllerDefinition: codegen.ControllerDefinition;
  DependentArguments: codegen.DependentArguments<never, never>;
  Desired: codegen.Desired<never, never, never>;
  IntOrString: codegen.IntOrString;
  Kept: codegen.Kept<object, never>;
  Narrowed: codegen.Narrowed<{ context: unknown }, unknown>;
  NarrowedReconciler: codegen.NarrowedReconciler<object, unknown>;
  ObjectMeta: codegen.ObjectMeta;
  ReconcileArguments: codegen.ReconcileArguments<never, never>;
  Reconciler: codegen.Reconciler<never, never, never>;
  ResourceDefinition: codegen.ResourceDefinition;
  Schema: codegen.Schema;
  StatusCondition: codegen.StatusCondition;
}

/** A type that generated code may import from the runtime. */
export type RuntimeType = keyof RuntimeTypes;

/** A value that generated code may import from the runtime. */
export type RuntimeValue = (typeof runtimeValues)[number];

/** The types that generated code may import from the runtime. */
export const runtimeTypes = Object.keys({
  Condition: true,
  ConditionArguments: true,
  ControllerDefinition: true,
  DependentArguments: true,
  Desired: true,
  IntOrString: true,
  Kept: true,
  Narrowed: true,
  NarrowedReconciler: true,
  ObjectMeta: true,
  ReconcileArguments: true,
  Reconciler: true,
  ResourceDefinition: true,
  Schema: true,
  StatusCondition: true,
} satisfies Record<RuntimeType, true>) as readonly RuntimeType[];

/** The conditions that the runtime ships. */
export const builtinConditions = [
  "crdPresent",
  "deleted",
  "ready",
] as const satisfies readonly (keyof typeof runtime)[];

/** What generated code declares event sources with. */
export const eventSourceValues = [
  "byAnnotation",
  "byLabel",
  "byOwnerReference",
  "cachingInboundSource",
  "informerSource",
  "perPrimaryPollingSource",
  "pollingSource",
] as const satisfies readonly (keyof typeof runtime)[];

/** A value that generated code may import to declare event sources. */
export type EventSourceValue = (typeof eventSourceValues)[number];
