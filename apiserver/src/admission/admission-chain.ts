import { checkEscalation } from "../identity/rbac/escalation.js";
import type { Authorizer } from "../identity/rbac/authorizer.js";
import type { JsonObject } from "../json.js";
import { settled } from "../pending-conversion.js";
import type { Admission, AdmittedWrite } from "./admission.js";
import { checkCertificateSubject } from "./certificate-subject.js";
import { checkLimitRanges, setContainerDefaults } from "./limits/limit-ranges.js";
import type { MutatingPolicies, PolicyChanges } from "./policy/mutating-policies.js";
import type { ValidatingPolicies } from "./policy/validating-policies.js";
import { chargeQuotas } from "./limits/resource-quotas.js";
import { setPriority } from "./priority.js";
import type { WebhookAdmission } from "./webhook-admission.js";

const RBAC = "rbac.authorization.k8s.io";

/** The policies of both kinds. */
export interface Policies {
  readonly mutating: MutatingPolicies;
  readonly validating: ValidatingPolicies;
}

/**
 * What is asked about a write: the priority of Pods and their limits, mutating policies and webhooks; then whether it gives more rights than its
 * user has, and to whom a certificate would, validating policies and webhooks.
 */
export class AdmissionChain implements Admission {
  readonly #authorizer: Authorizer;
  readonly #policies: Policies;
  readonly #webhooks: WebhookAdmission;

  constructor(authorizer: Authorizer, policies: Policies, webhooks: WebhookAdmission) {
    this.#authorizer = authorizer;
    this.#policies = policies;
    this.#webhooks = webhooks;
  }

  mutate(write: AdmittedWrite): Promise<JsonObject> | undefined {
    setPriority(write);
    setContainerDefaults(write);
    const { object } = write;
    const changes = object === undefined ? undefined : this.#policies.mutating.changesOf(write);
    if (object === undefined || changes === undefined) return this.#webhooks.mutate(write);
    return this.#mutateByPolicies(changes, write, object);
  }

  // Policies come before webhooks, and see once more what those have changed.
  async #mutateByPolicies(changes: PolicyChanges, write: AdmittedWrite, given: JsonObject): Promise<JsonObject> {
    const object = await settled(() => changes.first(write, given));
    const again = (changed: JsonObject): JsonObject | Promise<JsonObject> => {
      const next = { ...write, object: changed };
      setPriority(next);
      setContainerDefaults(next);
      return settled(() => changes.again(write, changed));
    };
    return (await this.#webhooks.mutate({ ...write, object }, again)) ?? again(object);
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
    checkCertificateSubject(write);
    checkLimitRanges(write);
    const { warnings } = context;
    const told = warnings.length;
    const evaluated = settled(() => {
      warnings.length = told;
      this.#policies.validating.validate(write);
    });
    if (evaluated !== undefined) return evaluated.then(() => this.#askAndCharge(write));
    return this.#askAndCharge(write);
  }

  #askAndCharge(write: AdmittedWrite): Promise<void> | undefined {
    const asked = this.#webhooks.validate(write);
    // What is refused is not counted, so quotas come last.
    if (asked !== undefined) return asked.then(() => chargeQuotas(write));
    chargeQuotas(write);
    return undefined;
  }
}
