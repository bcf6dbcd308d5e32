import { checkEscalation } from "../identity/rbac/escalation.js";
import type { Authorizer } from "../identity/rbac/authorizer.js";
import type { JsonObject } from "../json.js";
import type { Admission, AdmittedWrite } from "./admission.js";
import { checkLimitRanges, setContainerDefaults } from "./limits/limit-ranges.js";
import type { ValidatingPolicies } from "./policy/validating-policies.js";
import { chargeQuotas } from "./limits/resource-quotas.js";
import { setPriority } from "./priority.js";

const RBAC = "rbac.authorization.k8s.io";

/** What is asked about a write: the priority of Pods and their limits, then whether it gives more rights than its user has, the policies, the webhooks. */
export class AdmissionChain implements Admission {
  readonly #authorizer: Authorizer;
  readonly #policies: ValidatingPolicies;
  readonly #webhooks: Admission;

  constructor(authorizer: Authorizer, policies: ValidatingPolicies, webhooks: Admission) {
    this.#authorizer = authorizer;
    this.#policies = policies;
    this.#webhooks = webhooks;
  }

  mutate(write: AdmittedWrite): Promise<JsonObject> | undefined {
    setPriority(write);
    setContainerDefaults(write);
    return this.#webhooks.mutate(write);
  }

  validate(write: AdmittedWrite): Promise<void> | undefined {
    const { context, name, object, oldObject } = write;
    const { type } = context.resource;
    if (type.group === RBAC && object !== undefined) {
      const { user, namespace = "" } = context;
      const previous = oldObject === undefined ? {} : { oldObject };
      checkEscalation(this.#authorizer, {
        user,
        plural: type.plural,
        namespace,
        name,
        object,
        ...previous,
      });
    }
    checkLimitRanges(write);
    this.#policies.validate(write);
    const asked = this.#webhooks.validate(write);
    // What is refused is not counted, so quotas come last.
    if (asked !== undefined) return asked.then(() => chargeQuotas(write));
    chargeQuotas(write);
    return undefined;
  }
}
