// What a dependent does that waits for another one only if that is wanted.
import { assert, suite } from "../../../support/suite.js";
import { configOf, dependentController, untilOutcome } from "./sample-dependents.js";
import { ConfigMap, Sample, type DataObject } from "../sample-kind.js";
import { spacesOf } from "../space.js";

const openSpace = spacesOf();

const settings = configOf("settings", {
  deletion: "ordered",
  reconcilePrecondition: ({ primary }: { readonly primary: unknown }) => (primary as Sample).spec.value !== "without",
});

const web = configOf("web", {
  deletion: "ordered",
  dependsOn: [{ name: "settings", optional: true }],
  desired: ({ primary, secondary }) => ({
    metadata: { name: `${primary.metadata.name}-web` },
    data: { settings: (secondary["settings"] as DataObject | undefined)?.metadata.name ?? "none" },
  }),
});

suite("optional dependency", (test) => {
  test("is deleted after its dependent was updated to work without it", async () => {
    await using space = await openSpace();
    await using running = await space.start([dependentController([settings, web])]);
    await space.create(Sample, { metadata: { name: "one" }, spec: { value: "with" } });
    const before = await space.until(ConfigMap, "one-web", ({ data }) => data?.["settings"] === "one-settings");
    await space.patch(Sample, "one", { spec: { value: "without" } });
    const after = await space.until(ConfigMap, "one-web", ({ data }) => data?.["settings"] === "none");
    await space.untilGone(ConfigMap, "one-settings");
    assert.is(after.metadata.uid, before.metadata.uid, "it is the same object");
    await running.quiet();
    const writes = running.requests.filter((each) => /^(PATCH|DELETE) .*one-(web|settings)/.test(each));
    assert.match(writes.at(-2) ?? "", /^PATCH .*one-web/);
    assert.match(writes.at(-1) ?? "", /^DELETE .*one-settings/);
    await space.patch(Sample, "one", { spec: { value: "with" } });
    await space.until(ConfigMap, "one-web", ({ data }) => data?.["settings"] === "one-settings");
    await space.delete(Sample, "one");
    await space.untilGone(Sample, "one");
    const deletions = running.requests.filter((each) => each.startsWith("DELETE ")).slice(-2);
    assert.match(deletions[0] ?? "", /one-web/, "a cleanup keeps the order");
    assert.match(deletions[1] ?? "", /one-settings/);
  });

  test("delays its dependent while it is active and not ready", async () => {
    await using space = await openSpace();
    const unready = { ...settings, readyPostcondition: () => false };
    await using running = await space.start([dependentController([unready, web])]);
    await space.create(Sample, { metadata: { name: "one" }, spec: { value: "with" } });
    await untilOutcome(running, "web", "waiting");
    assert.is(await space.get(ConfigMap, "one-web"), undefined);
    await space.patch(Sample, "one", { spec: { value: "without" } });
    await space.until(ConfigMap, "one-web", ({ data }) => data?.["settings"] === "none");
  });
});
