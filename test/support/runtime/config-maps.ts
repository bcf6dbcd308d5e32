// ConfigMaps and Secrets, and dependents that are ConfigMaps, with defaults for everything that a test does not set.
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import type { Context } from "#runtime/workflow/context.js";
import type { KubernetesDependent } from "#runtime/workflow/workflow-definition.js";
import { builtinDefinition, classOf } from "../kinds/kind-definitions.js";

export interface DataObject extends KubernetesObject {
  data?: { [key: string]: string };
}

export const ConfigMap = classOf<DataObject>(builtinDefinition("v1", "ConfigMap"));
export const Secret = classOf<DataObject>(builtinDefinition("v1", "Secret"));

/** The arguments of `desired` and of the conditions of these dependents. */
export interface StatedArguments<Primary> {
  readonly primary: Primary;
  readonly secondary: { readonly [name: string]: KubernetesObject | undefined };
  readonly context: Context;
}

/** The fields of a dependent that a test sets. */
export type Stated<Primary> = Partial<Omit<KubernetesDependent, "desired">> & {
  readonly desired?: ((args: StatedArguments<Primary>) => object | Promise<object>) | undefined;
};

/** Creates a dependent with a name. */
export type DependentBuilder<Primary> = (name: string, stated?: Stated<Primary>) => KubernetesDependent;

/**
 * Returns a function that creates dependents: ConfigMaps whose name consists of that of the primary and the dependent, and whose data is derived from
 * the primary. A read-only dependent has no `desired`.
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
