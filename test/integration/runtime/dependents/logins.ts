// What the tests of cleanups share: an account with a service outside Kubernetes, and the Secret that its deletion needs.
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import type { ControllerDefinition } from "#runtime/reconcile/controller-definition.js";
import type {
  DependentDefinition,
  ExternalDependent,
  KubernetesDependent,
} from "#runtime/workflow/workflow-definition.js";
import { builtinDefinition, classOf } from "../../../support/kinds/kind-definitions.js";
import type { Account, AccountService } from "./account-service.js";
import { dependentController } from "./sample-dependents.js";
import { accountOf } from "./sample-externals.js";
import { Sample, Secret, type DataObject } from "../sample-kind.js";
import type { Space, TestOperator } from "../space.js";

interface EventObject extends KubernetesObject {
  readonly reason?: string;
  readonly message?: string;
}
export interface Known {
  readonly [name: string]: DataObject | undefined;
}
export type Arguments = { readonly secondary: Known };

const EventKind = classOf<EventObject>(builtinDefinition("v1", "Event"));
export const Namespace = classOf(builtinDefinition("v1", "Namespace"));
export const HOLD = "example.com/hold";
export const TOKEN = "c2VjcmV0";

export const sample = (spec: Sample["spec"] = {}) => ({ metadata: { name: "one" }, spec: { value: "first", ...spec } });

/** A Secret that the operator writes. */
export const loginOf = (rest: Partial<KubernetesDependent> = {}): KubernetesDependent =>
  ({
    name: "login",
    resource: Secret.definition,
    dependsOn: [],
    desired: ({ primary }: { primary: Sample }) => ({
      metadata: { name: `${primary.metadata.name}-login` },
      data: { token: TOKEN },
    }),
    ...rest,
  }) as KubernetesDependent;

/** A Secret of a user, which the primary names. */
export const refOf = (rest: Partial<KubernetesDependent> = {}): KubernetesDependent =>
  loginOf({
    desired: undefined,
    mode: "readOnly",
    ref: { name: ({ primary }: { primary: Sample }) => primary.spec.other },
    ...rest,
  } as never);

/** An account whose deletion, as its creation, needs the token of the Secret. */
export function accountWith(service: AccountService, rest: Partial<ExternalDependent> = {}): ExternalDependent {
  const enter = ({ secondary }: Arguments) => {
    if (secondary["login"]!.data!["token"] !== TOKEN) throw new Error("the token is wrong");
  };
  return accountOf("account", service, {
    dependsOn: ["login"],
    delete: (({ id }: Account, args: Arguments) => {
      enter(args);
      return service.delete(id);
    }) as never,
    ...rest,
  } as never);
}

/** Lets the service refuse to delete until it is healed, so that whatever deletes the inputs is first. */
export function refuseDeletions({ faults }: AccountService): { heal(): void } {
  faults.set("DELETE", "refused");
  return { heal: () => void faults.delete("DELETE") };
}

export const remove = (space: Space, policy: "Background" | "Foreground") =>
  space.client.delete(Sample, { name: "one", namespace: space.namespace }, { propagationPolicy: policy });

export const eventsIn = async (space: Space, reason: string) =>
  (await space.list(EventKind)).filter((each) => each.reason === reason).map(({ message = "" }) => message);

export const user = (name = "settings", data: DataObject["data"] = { token: TOKEN }) => ({
  metadata: { name },
  data: data!,
});

/** Starts an operator of these dependents; `rest` is of its controller. */
export const startWith = (
  space: Space,
  dependents: readonly DependentDefinition[],
  rest: Partial<ControllerDefinition> = {},
): Promise<TestOperator> => space.start([dependentController(dependents as never, rest as never)]);
