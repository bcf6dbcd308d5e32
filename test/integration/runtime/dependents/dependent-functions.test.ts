// Dependents that are made by functions of the user, and the functions that they have, against an API server.
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { builtinDefinition, classOf } from "../../../support/kinds/kind-definitions.js";
import { assert, suite } from "../../../support/suite.js";
import { configOf, dependentController } from "./sample-dependents.js";
import { ConfigMap, Sample } from "../sample-kind.js";
import { spacesOf, type Space } from "../space.js";

const openSpace = spacesOf();
const sample = () => ({ metadata: { name: "one" }, spec: { value: "first" } });
const ServiceAccount = classOf(builtinDefinition("v1", "ServiceAccount"));
const untilValue = (space: Space, name: string, value: string) =>
  space.until(ConfigMap, name, ({ data }) => data?.["value"] === value);

suite("dependent function", (test) => {
  test("creates dependents of one kind with different settings", async () => {
    await using space = await openSpace();
    const greeting = (name: string, { text, isLoud = false }: { text: string; isLoud?: boolean }) =>
      configOf(name, {
        desired: ({ primary }) => {
          const value = `${text}, ${primary.metadata.name}`;
          return { metadata: { name: `one-${name}` }, data: { value: isLoud ? value.toUpperCase() : value } };
        },
      });
    const dependents = [greeting("a", { text: "Hello" }), greeting("b", { text: "Welcome", isLoud: true })];
    await using _ = await space.start([dependentController(dependents)]);
    await space.create(Sample, sample());
    await untilValue(space, "one-a", "Hello, one");
    await untilValue(space, "one-b", "WELCOME, ONE");
  });

  test("does not prevent deletion if desired() throws during cleanup", async () => {
    await using space = await openSpace();
    const desired = ({ primary }: { primary: Sample }) => {
      if (primary.metadata.deletionTimestamp !== undefined) throw new Error("nothing is desired now");
      return { metadata: { name: "one-a" }, data: { value: "first" } };
    };
    await using _ = await space.start([dependentController([configOf("a", { deletion: "ordered", desired })])]);
    await space.create(Sample, sample());
    await untilValue(space, "one-a", "first");
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    assert.is(await space.get(ConfigMap, "one-a"), undefined);
  });

  test("receives the live object in reconcilePrecondition, and undefined after another client deletes it", async () => {
    await using space = await openSpace();
    const seen: (string | undefined)[] = [];
    const reconcilePrecondition = ({
      primary,
      live,
    }: {
      primary: Sample;
      live: Partial<KubernetesObject> | undefined;
    }) => {
      seen.push(live?.metadata?.name);
      return live !== undefined || primary.spec.value === "first";
    };
    await using running = await space.start([dependentController([configOf("a", { reconcilePrecondition })])]);
    await space.create(Sample, sample());
    await untilValue(space, "one-a", "first");
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await untilValue(space, "one-a", "second");
    await running.quiet();
    await space.delete(ConfigMap, "one-a");
    await space.untilGone(ConfigMap, "one-a");
    await running.quiet();
    assert.is(await space.get(ConfigMap, "one-a"), undefined, "nothing wants it any more");
    assert.equal([seen[0], seen.at(-1)], [undefined, undefined]);
    assert.ok(seen.includes("one-a"));
  });

  test("creates, updates and deletes an object without a spec", async () => {
    await using space = await openSpace();
    const dependent = configOf("a", {
      resource: ServiceAccount.definition,
      deletion: "ordered",
      desired: ({ primary }) => ({ metadata: { name: "web", annotations: { value: primary.spec.value } } }),
    });
    await using _ = await space.start([dependentController([dependent])]);
    const untilAnnotated = (value: string) =>
      space.until(ServiceAccount, "web", ({ metadata }) => metadata.annotations?.["value"] === value);
    await space.create(Sample, sample());
    await untilAnnotated("first");
    await space.patch(Sample, "one", { spec: { value: "second" } });
    await untilAnnotated("second");
    await space.delete(Sample, "one");
    await space.untilGone(ServiceAccount, "web");
  });
});
