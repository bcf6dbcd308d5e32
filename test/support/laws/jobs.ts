// Invariants of Jobs and their Pods, as kube-controller-manager manages them.
import type { Connection } from "../api/api-request.js";
import { assert, type DeclareTest } from "../suite.js";
import { TEST_OPTIONS } from "./cluster-steps.js";
import {
  type AnyObject,
  conditionsOf,
  countIn,
  openClusterSpace,
  podTemplate,
  type ClusterSpace,
} from "./space-of-cluster.js";

/** Declares invariants of Jobs and their Pods. */
export function declareJobLaws(test: DeclareTest["thorough"], connect: () => Promise<Connection>): void {
  const law = (title: string, body: (space: ClusterSpace) => Promise<void>) =>
    test(title, async () => body(await openClusterSpace(await connect())), TEST_OPTIONS);
  const template = (outcome: string, annotations: object = {}, spec: object = {}) =>
    podTemplate("job", {
      annotations: { "simulate/outcome": outcome, ...annotations },
      spec: { restartPolicy: "Never", terminationGracePeriodSeconds: 0, ...spec },
    });
  const create = (space: ClusterSpace, spec: object) => space.create("jobs", { metadata: { name: "job" }, spec });
  const isRunning = (object: AnyObject) => countIn(object, "ready") === 1;

  law("counts a deleted Pod of a running Job as failed and replaces it", async (space) => {
    for (const [name, grace] of [
      ["first", 30],
      ["second", 0],
    ] as const) {
      await space.create("jobs", { metadata: { name }, spec: { template: template("run") } });
      await space.until("jobs", name, isRunning);
      const [pod] = await space.list("pods", `job-name=${name}`);
      await space.remove("pods", pod?.metadata.name ?? "", `?gracePeriodSeconds=${grace}`);
      await space.untilGone("pods", pod?.metadata.name ?? "");
      const job = await space.until("jobs", name, (object) => isRunning(object) && countIn(object, "failed") === 1);
      assert.equal([countIn(job, "active"), countIn(job, "terminating")], [1, 0]);
    }
  });

  law("podReplacementPolicy: Failed: replaces a deleted Pod after it has terminated", async (space) => {
    await create(space, { podReplacementPolicy: "Failed", template: template("run") });
    await space.until("jobs", "job", isRunning);
    const [pod] = await space.list("pods", "app=job");
    await space.remove("pods", pod?.metadata.name ?? "", "?gracePeriodSeconds=30");
    await space.untilGone("pods", pod?.metadata.name ?? "");
    await space.until("jobs", "job", (object) => isRunning(object) && countIn(object, "failed") === 1);
  });

  law("deletes the Pods of a Job with suspend or parallelism 0, and counts none as failed", async (space) => {
    for (const change of [{ suspend: true }, { parallelism: 0 }]) {
      const [name = ""] = Object.keys(change);
      await space.create("jobs", { metadata: { name }, spec: { template: template("run") } });
      await space.until("jobs", name, isRunning);
      await space.patch("jobs", name, { spec: change });
      await space.untilList("pods", `job-name=${name}`, (pods) => pods.length === 0);
      const job = await space.until(
        "jobs",
        name,
        (object) => countIn(object, "active") + countIn(object, "terminating") === 0,
      );
      assert.equal([countIn(job, "failed"), countIn(job, "succeeded")], [0, 0]);
    }
  });

  law("fails a Job after activeDeadlineSeconds and deletes its Pods", async (space) => {
    await create(space, { activeDeadlineSeconds: 1, template: template("run") });
    const job = await space.until("jobs", "job", (object) => conditionsOf(object).length === 2);
    assert.equal(conditionsOf(job), ["FailureTarget True DeadlineExceeded", "Failed True DeadlineExceeded"]);
    await space.untilList("pods", "app=job", (pods) => pods.length === 0);
    assert.equal({ failed: countIn(job, "failed"), active: countIn(job, "active") }, { failed: 1, active: 0 });
  });

  law("podFailurePolicy: fails the Job (FailJob) or ignores the failure (Ignore)", async (space) => {
    const rules = [
      { action: "FailJob", onExitCodes: { containerName: "web", operator: "In", values: [42] } },
      { action: "Ignore", onPodConditions: [{ type: "DisruptionTarget" }] },
    ];
    const policy = { backoffLimit: 1, podFailurePolicy: { rules } };
    await create(space, { ...policy, template: template("fail", { "simulate/exit-code": "42" }) });
    const job = await space.until("jobs", "job", (object) => conditionsOf(object).length === 2);
    assert.equal(conditionsOf(job), ["FailureTarget True PodFailurePolicy", "Failed True PodFailurePolicy"]);
    const [pod] = await space.list("pods", "app=job");
    const [{ message = "" } = {}] = job.status?.["conditions"] as { message?: string }[];
    assert.is(
      message,
      `Container web for pod ${space.namespace}/${pod?.metadata.name} failed with exit code 42 matching FailJob rule at index 0`,
    );
    assert.is(countIn(job, "failed"), 1);
    await space.create("jobs", { metadata: { name: "evicted" }, spec: { ...policy, template: template("run") } });
    await space.until("jobs", "evicted", isRunning);
    const [evicted] = await space.list("pods", "job-name=evicted");
    await space.evict(evicted?.metadata.name ?? "");
    await space.untilGone("pods", evicted?.metadata.name ?? "");
    assert.is(countIn(await space.until("jobs", "evicted", isRunning), "failed"), 0);
  });

  law("podFailurePolicy: fails only the index of the Pod (FailIndex), without a retry", async (space) => {
    const rules = [
      { action: "FailIndex", onExitCodes: { containerName: "web", operator: "In", values: [42] } },
      { action: "Ignore", onPodConditions: [{ type: "DisruptionTarget" }] },
    ];
    const indexed = { completions: 2, parallelism: 2, completionMode: "Indexed", backoffLimitPerIndex: 3 };
    await create(space, { ...indexed, podFailurePolicy: { rules }, template: template("run") });
    const pods = await space.untilList("pods", "app=job", (all) => all.length === 2 && all.every(isUp));
    const nameOf = (index: string) =>
      pods.find(({ metadata }) => metadata.annotations?.[INDEX] === index)?.metadata.name ?? "";
    await space.fail(nameOf("1"), 42);
    const isCounted = (job: AnyObject) => job.status?.["failedIndexes"] === "1" && countIn(job, "failed") === 1;
    assert.equal(conditionsOf(await space.until("jobs", "job", isCounted)), []);
    await space.finish(nameOf("0"), "Succeeded");
    const job = await space.until("jobs", "job", (object) => conditionsOf(object).length === 2);
    assert.equal(conditionsOf(job), ["FailureTarget True FailedIndexes", "Failed True FailedIndexes"]);
    assert.equal([job.status?.["completedIndexes"], countIn(job, "succeeded"), countIn(job, "failed")], ["0", 1, 1]);
    const all = await space.list("pods", "app=job");
    assert.is(all.length, 2, "no Pod was retried");
  });

  law("successPolicy: completes a Job when index 0 succeeds, and deletes the other Pods", async (space) => {
    const spec = { completions: 3, parallelism: 3, completionMode: "Indexed" };
    await create(space, {
      ...spec,
      successPolicy: { rules: [{ succeededIndexes: "1" }, { succeededIndexes: "0,2", succeededCount: 1 }] },
      template: template("run"),
    });
    const pods = await space.untilList("pods", "app=job", (all) => all.length === 3 && all.every(isUp));
    const [first] = pods.filter(({ metadata }) => metadata.annotations?.[INDEX] === "0");
    await space.finish(first?.metadata.name ?? "", "Succeeded");
    const job = await space.until("jobs", "job", (object) => conditionsOf(object).length === 2);
    assert.equal(conditionsOf(job), ["SuccessCriteriaMet True SuccessPolicy", "Complete True SuccessPolicy"]);
    assert.equal(
      [countIn(job, "succeeded"), countIn(job, "failed"), job.status?.["completedIndexes"], countIn(job, "active")],
      [1, 0, "0", 0],
    );
  });

  law(
    "backoffLimitPerIndex: fails each index separately, and the Job after all indexes have finished",
    async (space) => {
      await create(space, {
        ...{ completions: 3, parallelism: 3, completionMode: "Indexed", backoffLimitPerIndex: 1 },
        template: template("run"),
      });
      for (const turn of ["0", "1"]) {
        const isTurn = ({ metadata }: AnyObject) => metadata.annotations?.[INDEX] === "1" && turnOf(metadata) === turn;
        const pods = await space.untilList("pods", "app=job", (all) => all.some((pod) => isTurn(pod) && isUp(pod)));
        await space.finish(pods.find(isTurn)?.metadata.name ?? "", "Failed");
      }
      // The real controller counts a Pod only after removing its finalizer, but lists the failed index before.
      const isCounted = (job: AnyObject) => job.status?.["failedIndexes"] === "1" && countIn(job, "failed") === 2;
      assert.equal(conditionsOf(await space.until("jobs", "job", isCounted)), []);
      for (const { metadata } of (await space.list("pods", "app=job")).filter(isUp))
        await space.finish(metadata.name, "Succeeded");
      const job = await space.until("jobs", "job", (object) => conditionsOf(object).length === 2);
      assert.equal(conditionsOf(job), ["FailureTarget True FailedIndexes", "Failed True FailedIndexes"]);
      assert.equal(
        [
          job.status?.["completedIndexes"],
          job.status?.["failedIndexes"],
          countIn(job, "succeeded"),
          countIn(job, "failed"),
        ],
        ["0,2", "1", 2, 2],
      );
    },
  );

  law("counts restarts of a Pod with restartPolicy OnFailure towards backoffLimit", async (space) => {
    await create(space, { backoffLimit: 2, template: template("fail", {}, { restartPolicy: "OnFailure" }) });
    const job = await space.until("jobs", "job", (object) => conditionsOf(object).length === 2);
    assert.equal(conditionsOf(job), ["FailureTarget True BackoffLimitExceeded", "Failed True BackoffLimitExceeded"]);
    assert.is(countIn(job, "failed"), 1);
  });
}

const INDEX = "batch.kubernetes.io/job-completion-index";

function turnOf({ annotations = {} }: AnyObject["metadata"]): string | undefined {
  return annotations["batch.kubernetes.io/job-index-failure-count"];
}

function isUp({ status }: AnyObject): boolean {
  return status?.["phase"] === "Running";
}
