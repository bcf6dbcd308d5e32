// List entries of others that an apply cannot remove, and that keep it from being accepted.
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import { waitFor } from "#apiserver/wait-for.js";
import { builtinDefinition, classOf } from "../../../support/kinds/kind-definitions.js";
import { assert, suite } from "../../../support/suite.js";
import { configMapOf, createPage, createPageOperator, startPageServer, type Page } from "../page-operator.js";

interface ServiceObject extends KubernetesObject {
  spec: { ports: { name: string; port: number; protocol?: string }[] };
}

const Service = classOf<ServiceObject>(builtinDefinition("v1", "Service"));

suite("list entries of others", (test) => {
  test("that claim what is unique are taken out of the way of an apply, once and with a line in the log", async () => {
    await using server = await startPageServer();
    const desired = ({ primary }: { primary: Page }) => ({
      metadata: { name: primary.metadata.name },
      spec: { ports: [{ name: "http", port: 80, protocol: "TCP" }] },
    });
    const service = configMapOf("service", { resource: Service.definition, desired });
    await using page = createPageOperator(server, { dependents: [service] });
    await page.operator.start();
    await createPage(page);
    const ref = { name: "one", namespace: "default" };
    const { client } = page.operator;
    const portsOf = async () =>
      (await client.get(Service, ref))?.spec.ports.map(({ name, port }) => `${name} ${port}`).join();
    await waitFor("the Service", async () => (await portsOf()) === "http 80");
    const ports = [
      { name: "http", port: 8080, protocol: "TCP" },
      { name: "admin", port: 9090, protocol: "TCP" },
    ];
    await client.jsonPatch(Service, ref, {
      fieldManager: "somebody",
      operations: [{ op: "replace", path: "/spec/ports", value: ports }],
    });
    await waitFor("our port is back", async () => /http 80(,|$)/.test((await portsOf()) ?? ""));
    const found = (await portsOf())!.split(",").sort();
    assert.equal(found, ["admin 9090", "http 80"]);
    const told = page.logs.filter((line) => line.startsWith("warn took list entries of others"));
    assert.is(told.length, 1, page.logs.join("\n"));
    assert.match(told[0]!, 'out of Service "default/one"');
  });
});
