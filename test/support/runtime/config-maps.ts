// ConfigMaps and Secrets, and dependents that are ConfigMaps, as data: what a test states of one is what matters to it.
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import type { Context } from "#runtime/workflow/context.js";
import type { KubernetesDependent } from "#runtime/workflow/workflow-definition.js";
import { builtinDefinition, classOf } from "../kinds/kind-definitions.js";

/** A ConfigMap or a Secret. */
export interface DataObject extends KubernetesObject {
  data?: { [key: string]: string };
}

export const ConfigMap = classOf<DataObject>(builtinDefinition("v1", "ConfigMap"));
export const Secret = classOf<DataObject>(builtinDefinition("v1", "Secret"));

/** What `desired` and the conditions of these dependents are called with. */
export interface StatedArguments<Primary> {
  readonly primary: Primary;
  readonly secondary: { readonly [name: string]: KubernetesObject | undefined };
  readonly context: Context;
}

/** What a test states of a dependent. */
export type Stated<Primary> = Partial<Omit<KubernetesDependent, "desired">> & {
  readonly desired?: ((args: StatedArguments<Primary>) => object | Promise<object>) | undefined;
};

/** Builds a dependent of this name. */
export type DependentBuilder<Primary> = (name: string, stated?: Stated<Primary>) => KubernetesDependent;

/**
 * Returns what builds dependents: ConfigMaps named after the primary and the dependent, with data of the primary. One that is only read has
 * no `desired`.
 */
export function configMapsWith<Primary extends KubernetesObject>(
  dataOf: (primary: Primary, secondary: StatedArguments<Primary>["secondary"]) => DataObject["data"],
): DependentBuilder<Primary> {
  return (name, stated = {}) => {
    const usual = ({ primary, secondary }: StatedArguments<Primary>) => ({
      metadata: { name: `${primary.metadata.name}-${name}` },
      data: dataOf(primary, secondary),
    });
    const { desired = stated.mode === "readOnly" ? undefined : usual, ...rest } = stated;
    return { name, resource: ConfigMap.definition, dependsOn: [], ...(desired && { desired }), ...rest };
  };
}
