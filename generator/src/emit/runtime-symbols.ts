import type * as runtime from "@gen-operator/runtime";
import type * as cel from "@gen-operator/runtime/cel";
import type * as codegen from "@gen-operator/runtime/codegen";
import type { BuiltinModel } from "../model/project-model.js";
import { type ImportSymbol, typeFrom, valueFrom } from "./print.js";

type BuiltinConditionName = BuiltinModel["name"];

/** Entry point of the runtime for generated code. */
export const codegenModule = "@gen-operator/runtime/codegen";

/** Entry point of the runtime with `parseResource` for kinds with rules, which includes the CEL evaluator. */
export const celModule = "@gen-operator/runtime/cel";

/** Entry point of the runtime for user code, and for built-in conditions and event sources in generated code. */
export const runtimeModule = "@gen-operator/runtime";

/** Values that generated code may import from the runtime. Renaming one in the runtime breaks the build here. */
export const runtimeValues = [
  "createResource",
  "defineController",
  "defineResource",
  "defineWorkflow",
  "guarded",
  "isResource",
  "parseResource",
  "untypedResource",
] as const satisfies readonly (keyof typeof codegen)[];

// `keyof typeof` only includes values, so types are listed as properties.
interface RuntimeTypes {
  ClusterMeta: codegen.ClusterMeta;
  Condition: codegen.Condition<never, never>;
  ConditionArguments: codegen.ConditionArguments<never, never>;
  ConditionResult: codegen.ConditionResult;
  ControllerDefinition: codegen.ControllerDefinition;
  CreateArguments: codegen.CreateArguments<never, never, never>;
  DeleteArguments: codegen.DeleteArguments<never, never, never>;
  DependentArguments: codegen.DependentArguments<never, never>;
  DependentMatcher: codegen.DependentMatcher;
  Desired: codegen.Desired<never, never, never>;
  DetailOf: codegen.DetailOf<never>;
  ExistingArguments: codegen.ExistingArguments<never, never>;
  ExistingCondition: codegen.ExistingCondition<never, never>;
  Explicit: codegen.Explicit<{ context: unknown }, unknown>;
  ExplicitReconciler: codegen.ExplicitReconciler<object, unknown>;
  FetchContext: codegen.FetchContext;
  IntOrString: codegen.IntOrString;
  ItemsOf: codegen.ItemsOf<never>;
  KeepsLess: codegen.KeepsLess<unknown>;
  Kept: codegen.Kept<object, never, never>;
  MapperContext: codegen.MapperContext;
  NamespacedMeta: codegen.NamespacedMeta;
  NewResource: codegen.NewResource<object, codegen.KubernetesObject>;
  ObjectMeta: codegen.ObjectMeta;
  ParseOptions: codegen.ParseOptions;
  PrimaryPatch: codegen.PrimaryPatch<object>;
  ReconcileArguments: codegen.ReconcileArguments<never, never>;
  Reconciler: codegen.Reconciler<never, never, never>;
  ResourceDefinition: codegen.ResourceDefinition;
  Schema: codegen.Schema;
  StatusCondition: codegen.StatusCondition;
  StoredCustomMeta: codegen.StoredCustomMeta;
  StoredMeta: codegen.StoredMeta;
  Unstored: codegen.Unstored<codegen.KubernetesObject>;
  UntypedInput: codegen.UntypedInput;
  UntypedResource: codegen.UntypedResource;
  UpdateArguments: codegen.UpdateArguments<never, never, never, never>;
  WorkflowInvocation: codegen.WorkflowInvocation;
}

/** A type that generated code may import from the runtime. */
export type RuntimeType = keyof RuntimeTypes;

/** Types that generated code may import from the runtime, in import order. */
export const runtimeTypes = Object.keys({
  ClusterMeta: true,
  Condition: true,
  ConditionArguments: true,
  ConditionResult: true,
  ControllerDefinition: true,
  CreateArguments: true,
  DeleteArguments: true,
  DependentArguments: true,
  DependentMatcher: true,
  Desired: true,
  DetailOf: true,
  ExistingArguments: true,
  ExistingCondition: true,
  Explicit: true,
  ExplicitReconciler: true,
  FetchContext: true,
  IntOrString: true,
  ItemsOf: true,
  KeepsLess: true,
  Kept: true,
  MapperContext: true,
  NamespacedMeta: true,
  NewResource: true,
  ObjectMeta: true,
  ParseOptions: true,
  PrimaryPatch: true,
  ReconcileArguments: true,
  Reconciler: true,
  ResourceDefinition: true,
  Schema: true,
  StatusCondition: true,
  StoredCustomMeta: true,
  StoredMeta: true,
  Unstored: true,
  UntypedInput: true,
  UpdateArguments: true,
  UntypedResource: true,
  WorkflowInvocation: true,
} satisfies Record<RuntimeType, true>) as readonly RuntimeType[];

/** Exports of the runtime for built-in conditions, by name in the spec. */
export const builtinConditions = {
  condition: "conditionIs",
  crdPresent: "crdPresent",
  deleted: "deleted",
  fieldEquals: "fieldEquals",
  ready: "ready",
  bound: "bound",
} as const satisfies Record<BuiltinConditionName, keyof typeof runtime>;

/** Exports of the runtime for event sources, and for negating conditions. */
const declared = [
  "byAnnotation",
  "byLabel",
  "byOwnerReference",
  "cachingInboundSource",
  "createInbound",
  "informerSource",
  "not",
  "perPrimaryPollingSource",
  "pollingSource",
] as const satisfies readonly (keyof typeof runtime)[];

type Declared = (typeof declared)[number] | (typeof builtinConditions)[BuiltinConditionName];

/** Imports of the types of the runtime, by name. */
export const codegenTypes = Object.fromEntries(runtimeTypes.map((name) => [name, typeFrom(codegenModule, name)])) as {
  readonly [K in RuntimeType]: ImportSymbol;
};

/** Imports of the values of the runtime, by name. */
export const codegenValues = Object.fromEntries(
  runtimeValues.map((name) => [name, valueFrom(codegenModule, name)]),
) as { readonly [K in (typeof runtimeValues)[number]]: ImportSymbol };

/** Imports of the values that check CEL rules, by name. */
export const celValues = { parseResource: valueFrom(celModule, "parseResource") } satisfies {
  readonly [K in keyof typeof cel]?: ImportSymbol;
};

/** Imports of the values that declare event sources and conditions, by name. */
export const declarationValues = Object.fromEntries(
  [...declared, ...Object.values(builtinConditions)].map((name) => [name, valueFrom(runtimeModule, name)]),
) as { readonly [K in Declared]: ImportSymbol };
