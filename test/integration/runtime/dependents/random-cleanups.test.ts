// Deletion depends on nothing that may be gone: whatever is deleted before or during the deletion of a primary, and whenever the operator is
// restarted, the primary goes, and what the operator has to delete goes with it.
import type { DependentDefinition } from "#runtime/workflow/workflow-definition.js";
import fc from "../../../support/fast-check.js";
import { runs } from "../../../support/runs.js";
import { assert, suite } from "../../../support/suite.js";
import { startAccountService, type AccountService } from "./account-service.js";
import { configOf } from "./sample-dependents.js";
import { untilValues } from "./sample-externals.js";
import { ConfigMap, Sample, Secret } from "../sample-kind.js";
import { spacesOf, type Space, type TestOperator } from "../space.js";
import {
  accountWith,
  loginOf,
  refOf,
  refuseDeletions,
  remove,
  sample,
  startWith,
  user,
  type Arguments,
} from "./logins.js";

const openSpace = spacesOf({ simulate: true });
const MOST_LINES = 25;
const INPUTS = ["login", "flags"] as const;
type Input = (typeof INPUTS)[number];

/** Conditions that need the flags, each in its way. */
const CONDITIONS = {
  none: undefined,
  throws: ({ secondary }: Arguments) => secondary["flags"]!.data!["token"] !== undefined,
  isFalse: ({ secondary }: Arguments) => secondary["flags"]?.data?.["token"] !== undefined,
  ofPrimary: ({ primary }: { readonly primary: Sample }) => primary.spec.value === "first",
} as const;
const condition = fc.constantFrom(...(Object.keys(CONDITIONS) as (keyof typeof CONDITIONS)[]));
const postcondition = fc.constantFrom("none" as const, "throws" as const, "isFalse" as const);

const plan = fc.record({
  login: fc.constantFrom("managed" as const, "put" as const, "ordered" as const, "ref" as const),
  isHeld: fc.boolean(),
  activation: condition,
  postcondition,
  isBulk: fc.boolean(),
  dependsOn: fc.subarray(["login", "flags"]),
  turnsOff: fc.boolean(),
  before: fc.subarray<Input>([...INPUTS]),
  during: fc.subarray<Input>([...INPUTS]),
  policy: fc.constantFrom("Background" as const, "Foreground" as const),
  restart: fc.constantFrom("never" as const, "before" as const, "during" as const),
});
type Plan = typeof plan extends fc.Arbitrary<infer Value> ? Value : never;

function dependentsOf(service: AccountService, plan: Plan): DependentDefinition[] {
  const { activation, isBulk, isHeld, dependsOn } = plan;
  const held = { heldForCleanup: isHeld };
  const login = {
    managed: loginOf(held),
    put: loginOf({ ...held, serverSideApply: false }),
    ordered: loginOf({ ...held, deletion: "ordered" }),
    ref: refOf(held),
  }[plan.login];
  const flags = refOf({ name: "flags", ref: { name: "flags" }, ...held });
  const item = { metadata: { name: "one-child" } };
  const child = configOf("child", {
    deletion: "ordered",
    dependsOn,
    activationCondition: CONDITIONS[activation] as never,
    deletePostcondition: CONDITIONS[plan.postcondition] as never,
    desired: () => (isBulk ? { a: item } : item),
    ...(isBulk && { bulk: {} }),
  });
  return [login, flags, child, accountWith(service)];
}

async function play(space: Space, service: AccountService, plan: Plan): Promise<void> {
  const nameOf = (input: Input) => (input === "flags" ? "flags" : plan.login === "ref" ? "settings" : "one-login");
  const removeInput = (input: Input) => space.delete(Secret, nameOf(input)).catch(() => {});
  await space.create(Secret, user());
  await space.create(Secret, user("flags"));
  const operators: TestOperator[] = [];
  const start = async () => void operators.push(await startWith(space, dependentsOf(service, plan)));
  const restart = async () => {
    await operators.at(-1)!.operator.stop();
    await start();
  };
  await start();
  await space.create(Sample, sample({ other: "settings" }));
  await untilValues(service, "first");
  await space.until(ConfigMap, "one-child", () => true);
  if (plan.turnsOff) await space.patch(Sample, "one", { spec: { value: "second" } });
  for (const input of plan.before) await removeInput(input);
  // The operator creates its own again, and until then only its memory has what was deleted.
  if (plan.login !== "ref")
    await space.until(Secret, "one-login", ({ metadata }) => metadata.deletionTimestamp === undefined);
  // What is deleted while the operator, and nothing else, knows of it is lost in a restart, unless it is held.
  const isLost = plan.login === "ref" && plan.before.includes("login");
  if (plan.restart === "before" && !isLost) await restart();
  const fault = refuseDeletions(service);
  await remove(space, plan.policy);
  for (const input of plan.during) await removeInput(input);
  if (plan.restart === "during" && plan.isHeld && !isLost) await restart();
  fault.heal();
  await space.untilGone(Sample, "one");
  assert.is(service.accounts.size, 0, "no account is left");
  assert.is(await space.get(ConfigMap, "one-child"), undefined);
  const left = (await space.list(Secret)).flatMap(({ metadata }) => metadata.finalizers ?? []);
  assert.equal(
    left.filter((name) => name.includes("gen-operator.dev")),
    [],
  );
  const lines = new Map<string, number>();
  for (const line of operators.flatMap(({ logs }) => logs))
    if (/^(warn|error) /.test(line)) lines.set(line, (lines.get(line) ?? 0) + 1);
  const loud = [...lines].filter(([, count]) => count > MOST_LINES);
  assert.equal(loud, []);
}

suite("deletion of a primary", (test) => {
  test(
    "completes and leaves no dependents for random deletions of its inputs and random restarts",
    async () => {
      await fc.assert(
        fc.asyncProperty(plan, async (plan) => {
          await using space = await openSpace();
          await using service = await startAccountService();
          await play(space, service, plan);
        }),
        { numRuns: runs(64), endOnFailure: true, includeErrorInReport: true },
      );
    },
    { timeoutMs: 300_000 },
  );
});
