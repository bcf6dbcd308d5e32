import type * as runtime from "@gen-operator/runtime";
import type * as cel from "@gen-operator/runtime/cel";
import type * as codegen from "@gen-operator/runtime/codegen";
import type { BuiltinModel } from "../model/project-model.js";
import { type ImportSymbol, typeFrom, valueFrom } from "./print.js";

type BuiltinConditionName = BuiltinModel["name"];

/** The module that generated code imports: the runtime's door for it. */
export const codegenModule = "@gen-operator/runtime/codegen";

/** The module that has `parseResource` of a kind with rules; the evaluator of rules is behind it. */
export const celModule = "@gen-operator/runtime/cel";

/** The module that the user's code imports, and generated code for the built-in conditions. */
export const runtimeModule = "@gen-operator/runtime";

/** Values that generated code may import from the runtime; renaming one there fails the build here. */
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

// `keyof typeof` sees values only, so types are named in an object type.
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

/** The types that generated code may import from the runtime, in the order in which it imports them. */
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

/** What the runtime exports for each of the conditions that it ships. */
export const builtinConditions = {
  condition: "conditionIs",
  crdPresent: "crdPresent",
  deleted: "deleted",
  fieldEquals: "fieldEquals",
  ready: "ready",
  bound: "bound",
} as const satisfies Record<BuiltinConditionName, keyof typeof runtime>;

/** What the runtime exports for event sources, and for conditions besides those that it ships. */
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

/** The types of the runtime for generated code, by their names. */
export const codegenTypes = Object.fromEntries(runtimeTypes.map((name) => [name, typeFrom(codegenModule, name)])) as {
  readonly [K in RuntimeType]: ImportSymbol;
};

/** The values of the runtime for generated code. */
export const codegenValues = Object.fromEntries(
  runtimeValues.map((name) => [name, valueFrom(codegenModule, name)]),
) as { readonly [K in (typeof runtimeValues)[number]]: ImportSymbol };

/** The values that check rules. */
export const celValues = { parseResource: valueFrom(celModule, "parseResource") } satisfies {
  readonly [K in keyof typeof cel]?: ImportSymbol;
};

/** The values that event sources and conditions are declared with. */
export const declarationValues = Object.fromEntries(
  [...declared, ...Object.values(builtinConditions)].map((name) => [name, valueFrom(runtimeModule, name)]),
) as { readonly [K in Declared]: ImportSymbol };
