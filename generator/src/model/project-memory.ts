// What the manifest remembers of the last generation: a dependent that leaves a spec may have objects that run.
import { type Diagnostic, didYouMean, quote } from "../diagnostic.js";
import type { UntypedKindSpec, WorkflowSpec } from "../read/workflow-spec.js";
import { type DependentModel, type ProjectModel, type ResourceModel, isKubernetes } from "./project-model.js";
import { UNKNOWN_FORGET } from "./rules.js";

/** A dependent that an operator may have run with. */
export interface RememberedDependent {
  readonly controller: string;
  readonly name: string;
  /** Its kind as specs state it; `external` if it is none of Kubernetes. */
  readonly resource: string | UntypedKindSpec;
  readonly isReadOnly?: true;
  readonly namespace?: string;
  readonly cluster?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** What became of its objects when they had to go. Default: garbageCollected */
  readonly deletion?: "ordered" | "orphan";
  /** Where the ids of external resources are kept. */
  readonly state?: string;
}

/** A controller of the last generation. */
export interface RememberedController {
  readonly name: string;
  /** The kind of its primary: `example.com/v1/WebPage`. */
  readonly primary: string;
}

/** What is known of the last generation. */
export interface ProjectMemory {
  readonly dependents: readonly RememberedDependent[];
  /** Default: none. Manifests of earlier generators do not record them. */
  readonly controllers?: readonly RememberedController[];
  /** Without a manifest: the stubs that are there, by the folder of their controller. They say which dependents there were. */
  readonly stubs: readonly StubWitness[];
  /** Whether a run was cut off, so that dependents of two generations are remembered. */
  readonly isUnfinished?: boolean;
}

/** A file of the user's that was the stub of a dependent: `src/webpage/dependents/web-server.ts`. */
export interface StubWitness {
  /** `webpage` */
  readonly folder: string;
  /** `web-server` */
  readonly name: string;
  readonly file: string;
}

/** The kind of an external dependent, in the place of a kind of Kubernetes. */
export const EXTERNAL = "external";

/** Nothing is known of a last generation. */
export const NO_MEMORY: ProjectMemory = Object.freeze({ dependents: [], stubs: [] });

/** Returns what the next generation has to know of the dependents of a project. */
export function rememberDependents({ controllers }: ProjectModel): RememberedDependent[] {
  return controllers.flatMap(({ name: controller, dependents }) =>
    dependents.map((dependent) => ({ controller, name: dependent.name, ...factsOf(dependent) })),
  );
}

/** Returns what the next generation has to know of the controllers of a project. */
export function rememberControllers({ controllers }: ProjectModel): RememberedController[] {
  return controllers.map(({ name, primary: { group, version, kind } }) => ({
    name,
    primary: group === "" ? `${version}/${kind}` : `${group}/${version}/${kind}`,
  }));
}

/** Returns the last generation under the present names of renamed controllers, as their `formerNames` state them. */
export function followRenames(memory: ProjectMemory, workflows: readonly WorkflowSpec[]): ProjectMemory {
  const present = new Map(
    workflows.flatMap(({ name, controller: { formerNames = [] } }) => formerNames.map((each) => [each, name] as const)),
  );
  const nameOf = (name: string) => present.get(name) ?? name;
  const { dependents, controllers } = memory;
  return {
    ...memory,
    dependents: distinct(dependents.map((each) => ({ ...each, controller: nameOf(each.controller) }))),
    ...(controllers && { controllers: distinct(controllers.map((each) => ({ ...each, name: nameOf(each.name) }))) }),
  };
}

// An unfinished run has recorded a renamed controller under both names.
function distinct<Entry>(entries: readonly Entry[]): Entry[] {
  return [...new Map(entries.map((each) => [JSON.stringify(each), each])).values()];
}

/** Returns the last generation without the controllers and dependents that nothing runs of. */
export function forgetNames(memory: ProjectMemory, forget: readonly string[]): ProjectMemory {
  const { dependents, controllers } = memory;
  return {
    ...memory,
    dependents: dependents.filter((each) => !isForgotten(each, forget)),
    ...(controllers && { controllers: controllers.filter(({ name }) => !forget.includes(name)) }),
  };
}

/** Tells whether a dependent is one of those that the user says nothing runs of: by its controller, or as `controller/dependent`. */
function isForgotten({ controller, name }: RememberedDependent, forget: readonly string[]): boolean {
  return forget.includes(controller) || forget.includes(`${controller}/${name}`);
}

/** Finds the names that are to be forgotten, and that nothing remembers. */
export function checkForgotten(
  { dependents, controllers = [] }: ProjectMemory,
  forget: readonly string[],
): Diagnostic[] {
  const names = [
    ...controllers.map(({ name }) => name),
    ...dependents.flatMap(({ controller, name }) => [controller, `${controller}/${name}`]),
  ];
  const known = [...new Set(names)].sort();
  return forget
    .filter((name) => !known.includes(name))
    .map((name): Diagnostic => {
      const meant = didYouMean(name, known);
      const all = `known names: ${known.length === 0 ? "none" : known.join(", ")}`;
      return {
        ...UNKNOWN_FORGET.violation,
        message: `--forget ${quote(name)}: the last generation had no such controller or dependent`,
        hint: meant === undefined ? all : `${meant.hint} ${all}`,
      };
    });
}

function factsOf(dependent: DependentModel): Omit<RememberedDependent, "controller" | "name"> {
  if (!isKubernetes(dependent)) {
    const { state, capabilities } = dependent.external;
    const place = state && ("path" in state ? `${state.kind} ${state.path.join(".")}` : state.kind);
    return {
      resource: EXTERNAL,
      ...(capabilities.length === 0 ? { isReadOnly: true as const } : {}),
      ...(place === undefined ? {} : { state: place }),
    };
  }
  const { resource, mode, namespace, cluster, labelSelector, fieldSelector, deletion } = dependent;
  return {
    resource: statedKindOf(resource),
    ...(mode === "readOnly" ? { isReadOnly: true as const } : {}),
    ...(namespace === undefined ? {} : { namespace }),
    ...(cluster === undefined ? {} : { cluster }),
    ...(labelSelector === undefined ? {} : { labelSelector }),
    ...(fieldSelector === undefined ? {} : { fieldSelector }),
    ...(deletion === "garbageCollected" ? {} : { deletion }),
  };
}

function statedKindOf({ group, version, kind, plural, scope, isUntyped }: ResourceModel): string | UntypedKindSpec {
  const apiVersion = group === "" ? version : `${group}/${version}`;
  return isUntyped === true ? { apiVersion, kind, plural, scope } : `${apiVersion}/${kind}`;
}
