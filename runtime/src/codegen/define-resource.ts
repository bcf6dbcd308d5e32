import { fillDefaults, generateName } from "@gen-operator/schema";
import type { KubernetesObject, ObjectMeta, StoredMeta } from "../base/kubernetes-object.js";
import type { NewResource, Unstored } from "../base/resource-definition.js";
import type { ResourceClass, ResourceDefinition } from "../base/resource-definition.js";

/** The facts of a kind that generated code states. */
export type ResourceFacts = Pick<
  ResourceDefinition,
  "group" | "version" | "kind" | "plural" | "scope" | "hasStatusSubresource" | "scale" | "isCustom" | "schema"
>;

/** Defines a kind from its facts. */
export function defineResource<Resource extends KubernetesObject>(facts: ResourceFacts): ResourceDefinition<Resource> {
  const apiVersion = facts.group === "" ? facts.version : `${facts.group}/${facts.version}`;
  return Object.freeze({ ...facts, apiVersion });
}

/**
 * Builds an object of a kind: `init` with the kind's apiVersion and kind and, of a custom kind, with the defaults of its schema, so that it
 * is what the API server will store.
 *
 * A name that is to start with `generateName` is completed here, as the API server does. So the object has a name that can be referred to
 * before it exists, and creating it twice by mistake fails.
 */
export function createResource<Resource extends KubernetesObject>(
  { apiVersion, kind, isCustom, schema }: ResourceDefinition<Resource>,
  init: { readonly metadata?: { readonly name?: string | undefined; readonly generateName?: string | undefined } },
): Unstored<Resource> {
  const given = { apiVersion, kind, ...init };
  const { definitions = {} } = schema;
  const object = (isCustom ? fillDefaults(given, schema, definitions) : given) as unknown as Unstored<Resource>;
  const { name, generateName: base } = init.metadata ?? {};
  if (name !== undefined || base === undefined) return object;
  return Object.assign({}, object, { metadata: { ...init.metadata, name: generateName(base) } });
}

/**
 * Returns an object as it is read after the API server has stored it: with its defaults, `uid`, `resourceVersion`, `creationTimestamp` and, of a
 * custom kind, `generation`, unless it has them. For unit tests of functions that are called with what was read.
 *
 * @example
 * const primary = asStored(WebPage, { metadata: { name: "home", namespace: "default" }, spec: { html: "<h1>Hello</h1>" } });
 */
export function asStored<Resource extends KubernetesObject, Input>(
  { definition }: ResourceClass<Resource, Input>,
  object: NewResource<Input, Resource> | Unstored<Resource>,
): Resource {
  const created: KubernetesObject = createResource(definition as ResourceDefinition, object);
  const { metadata } = created;
  const stored: ObjectMeta & StoredMeta = {
    ...metadata,
    uid: metadata.uid ?? crypto.randomUUID(),
    resourceVersion: metadata.resourceVersion ?? "1",
    creationTimestamp: metadata.creationTimestamp ?? `${new Date().toISOString().slice(0, 19)}Z`,
    ...(definition.isCustom ? { generation: metadata.generation ?? 1 } : {}),
  };
  return { ...created, metadata: stored } as unknown as Resource;
}

/** Tells whether a value is an object of the kind, by apiVersion and kind alone. */
export function isResource<Resource extends KubernetesObject>(
  definition: ResourceDefinition<Resource>,
  value: unknown,
): value is Resource {
  if (typeof value !== "object" || value === null) return false;
  const { apiVersion, kind } = value as Partial<KubernetesObject>;
  return apiVersion === definition.apiVersion && kind === definition.kind;
}

/** The facts of a kind without a generated class; `plural` is the name that `kubectl api-resources` shows. */
export interface UntypedFacts extends Pick<ResourceDefinition, "apiVersion" | "kind" | "plural" | "scope"> {
  /** Default: true */
  readonly hasStatusSubresource?: boolean;
}

/** An object of a kind of which only the name is known. */
export interface UntypedResource extends KubernetesObject {
  readonly [field: string]: unknown;
}

/** What `desired` returns for a kind of which only the name is known. */
export interface UntypedInput {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata: ObjectMeta;
  readonly [field: string]: unknown;
}

// The groups with a dot that a kube-apiserver 1.36 serves by itself. Other groups end in k8s.io as well, and are custom: those of
// Gateway API, volume snapshots and metrics.
const BUILTIN_GROUPS: ReadonlySet<string> = new Set([
  "admissionregistration.k8s.io",
  "apiextensions.k8s.io",
  "apiregistration.k8s.io",
  "authentication.k8s.io",
  "authorization.k8s.io",
  "certificates.k8s.io",
  "coordination.k8s.io",
  "discovery.k8s.io",
  "events.k8s.io",
  "flowcontrol.apiserver.k8s.io",
  "networking.k8s.io",
  "node.k8s.io",
  "rbac.authorization.k8s.io",
  "resource.k8s.io",
  "scheduling.k8s.io",
  "storage.k8s.io",
]);

/** Describes a kind by its name alone (JOSDK's GenericKubernetesResource): its objects are whatever the server has. */
export function untypedResource(facts: UntypedFacts): ResourceClass<UntypedResource, UntypedInput> {
  const { apiVersion, kind, plural, scope, hasStatusSubresource = true } = facts;
  const [version = "", group = ""] = apiVersion.split("/").reverse();
  // The API server refuses a CustomResourceDefinition whose group has no dot.
  const isCustom = group.includes(".") && !BUILTIN_GROUPS.has(group);
  const names = { group, version, kind, plural, scope };
  const definition = defineResource<UntypedResource>({ ...names, hasStatusSubresource, isCustom, schema: {} });
  return Object.freeze({
    definition,
    create: (init: NewResource<UntypedInput, UntypedResource>) => createResource(definition, init),
  });
}
