import { isKubernetes, type ConditionModel, type ControllerModel, type ResourceModel } from "./project-model.js";

/** A condition of a controller that asks whether a kind is served. */
export interface PresenceCheck {
  readonly resource: ResourceModel;
  /** What the condition decides about: `dependent ingress`. */
  readonly about: string;
  /** Whether it asks another cluster. */
  readonly isElsewhere: boolean;
}

/** Returns what the conditions of a controller ask by `crdPresent`. */
export function presenceChecksOf({
  dependents,
  eventSources,
}: Pick<ControllerModel, "dependents" | "eventSources">): PresenceCheck[] {
  const check = (
    condition: ConditionModel | undefined,
    about: string,
    own: ResourceModel | undefined,
    isElsewhere = false,
  ): PresenceCheck[] => {
    if (condition?.kind !== "builtin" || condition.name !== "crdPresent") return [];
    const resource = condition.of ?? own;
    return resource === undefined ? [] : [{ resource, about, isElsewhere }];
  };
  return [
    ...dependents.flatMap((dependent) => {
      const own = isKubernetes(dependent) ? dependent.resource : undefined;
      const isElsewhere = isKubernetes(dependent) && dependent.cluster !== undefined;
      const about = `dependent ${dependent.name}`;
      return Object.values(dependent.conditions).flatMap((each) => check(each, about, own, isElsewhere));
    }),
    ...eventSources.flatMap((source) =>
      source.kind === "informer"
        ? check(source.activationCondition, `event source ${source.name}`, source.resource)
        : [],
    ),
  ];
}
