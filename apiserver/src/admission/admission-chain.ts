import { type Authorizer, accessDenied, checkEscalation } from "../identity/authorizer.js";
import { isReview } from "../identity/reviews.js";
import type { JsonObject } from "../json.js";
import { settled } from "../pending-conversion.js";
import { checkServiceAccount, setServiceAccount } from "./accounts/service-accounts.js";
import type { Admission, AdmittedWrite } from "./admission.js";
import { checkSigner } from "./certificate-signers.js";
import { checkCertificateSubject } from "./certificate-subject.js";
import { setDefaultClass } from "./classes/default-classes.js";
import { checkOneDefault, setPriority } from "./classes/priority.js";
import { checkRuntimeClass, setRuntimeClass } from "./classes/runtime-class.js";
import { checkClaimGrowth } from "./limits/claim-growth.js";
import { checkLimitRanges, setContainerDefaults } from "./limits/limit-ranges.js";
import { type PutStatus, chargeQuotas } from "./limits/resource-quotas.js";
import { checkPodSecurity } from "./pod-security/pod-security.js";
import { checkResize } from "./pods/resize.js";
import { checkSimulation } from "./pods/simulation.js";
import { setTolerations } from "./pods/tolerations.js";
import type { MutatingPolicies, PolicyChanges } from "./policy/mutating-policies.js";
import { checkParamRights } from "./policy/param-rights.js";
import type { ValidatingPolicies } from "./policy/validating-policies.js";
import { setTopologyLabels } from "./topology-labels.js";
import type { WebhookAdmission } from "./webhook-admission.js";

const RBAC = "rbac.authorization.k8s.io";

/** The policies of both kinds. */
export interface Policies {
  readonly mutating: MutatingPolicies;
  readonly validating: ValidatingPolicies;
}

/** Who is asked beside those who always are. */
export interface AdmissionMembers {
  readonly policies: Policies;
  readonly webhooks: WebhookAdmission;
  /** Whether each Pod has to have a ServiceAccount. */
  readonly needsAccounts: boolean;
  /** Whether Pods are simulated, and say by annotations how. */
  readonly simulatesPods: boolean;
  /** Stores a status that the server itself writes. */
  readonly putStatus: PutStatus;
}

/**
 * What is asked about a write: the limits of Pods, their accounts, priority and runtime, mutating policies and webhooks; then whether it gives more rights than its
 * user has, and to whom a certificate would, validating policies and webhooks.
 */
export class AdmissionChain implements Admission {
  readonly #authorizer: Authorizer;
  readonly #policies: Policies;
  readonly #webhooks: WebhookAdmission;
  readonly #needsAccounts: boolean;
  readonly #simulatesPods: boolean;
  readonly #putStatus: PutStatus;

  constructor(
    authorizer: Authorizer,
    { policies, webhooks, needsAccounts, simulatesPods, putStatus }: AdmissionMembers,
  ) {
    this.#authorizer = authorizer;
    this.#policies = policies;
    this.#webhooks = webhooks;
    this.#needsAccounts = needsAccounts;
    this.#simulatesPods = simulatesPods;
    this.#putStatus = putStatus;
  }

  mutate(write: AdmittedWrite): Promise<JsonObject> | undefined {
    const { object } = write;
    const completed = this.#complete(write);
    if (completed === undefined || object === undefined) return this.#mutateCompleted(write);
    return completed.then(async () => (await this.#mutateCompleted(write)) ?? object);
  }

  // In place; a promise where an account is waited for.
  #complete(write: AdmittedWrite): Promise<void> | undefined {
    setContainerDefaults(write);
    const isGiven = this.#needsAccounts ? setServiceAccount(write) : undefined;
    if (isGiven !== undefined) return isGiven.then(() => setClasses(write));
    setClasses(write);
    return undefined;
  }

  #mutateCompleted(write: AdmittedWrite): Promise<JsonObject> | undefined {
    const { object } = write;
    const isSeen = object !== undefined && !isReview(write.context.resource.type);
    const changes = isSeen ? this.#policies.mutating.changesOf(write) : undefined;
    if (object === undefined || changes === undefined) return this.#webhooks.mutate(write);
    return this.#mutateByPolicies(changes, write, object);
  }

  // Policies come before webhooks, and see once more what those have changed.
  async #mutateByPolicies(changes: PolicyChanges, write: AdmittedWrite, given: JsonObject): Promise<JsonObject> {
    const object = await settled(() => changes.first(write, given));
    const again = (changed: JsonObject): JsonObject | Promise<JsonObject> => {
      const completed = this.#complete({ ...write, object: changed });
      if (completed === undefined) return settled(() => changes.again(write, changed));
      return completed.then(() => settled(() => changes.again(write, changed)));
    };
    return (await this.#webhooks.mutate({ ...write, object }, again)) ?? again(object);
  }

  validate(write: AdmittedWrite): Promise<void> | undefined {
    const { context, name, object, oldObject } = write;
    const { type } = context.resource;
    if (write.isUpsert === true) this.#checkMayCreate(write);
    checkParamRights(this.#authorizer, write);
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
    checkSigner(this.#authorizer, write);
    checkCertificateSubject(write);
    checkLimitRanges(write);
    checkPodSecurity(write);
    checkOneDefault(write);
    checkClaimGrowth(write);
    checkRuntimeClass(write);
    checkResize(write);
    if (this.#needsAccounts) checkServiceAccount(write);
    if (this.#simulatesPods) checkSimulation(write);
    // Webhooks are asked about reviews, policies are not.
    if (isReview(type)) return this.#askAndCharge(write);
    const { warnings } = context;
    const told = warnings.length;
    const evaluated = settled(() => {
      warnings.length = told;
      this.#policies.validating.validate(write);
    });
    if (evaluated !== undefined) return evaluated.then(() => this.#askAndCharge(write));
    return this.#askAndCharge(write);
  }

  #checkMayCreate({ context, name }: AdmittedWrite): void {
    const { group, plural } = context.resource.type;
    const { namespace = "", user } = context;
    const attributes = { verb: "create", group, resource: plural, subresource: "", namespace, name };
    if (!this.#authorizer.decide(user, attributes).allowed) throw accessDenied(user, attributes);
  }

  #askAndCharge(write: AdmittedWrite): Promise<void> | undefined {
    const asked = this.#webhooks.validate(write);
    // What is refused is not counted, so quotas come last.
    if (asked !== undefined) return asked.then(() => chargeQuotas(write, this.#putStatus));
    chargeQuotas(write, this.#putStatus);
    return undefined;
  }
}

function setClasses(write: AdmittedWrite): void {
  setDefaultClass(write);
  setTopologyLabels(write);
  setPriority(write);
  // Those for nodes that fail come before those of a class.
  setTolerations(write);
  setRuntimeClass(write);
}
