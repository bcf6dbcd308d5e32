import { startApiServer, type ApiServer } from "#apiserver/server.js";
import { waitFor } from "#apiserver/wait-for.js";
import { apiRequest, apiRequestOrThrow, type ApiObject } from "../../support/api/api-request.js";
import { assert, suite } from "../../support/suite.js";

const HOUR_MS = 3_600_000;
const JOBS = "/apis/batch/v1/namespaces/default/jobs";
const PODS = "/api/v1/namespaces/default/pods";

suite("shiftClock", (test) => {
  const start = () => startApiServer({ simulate: { delayMs: 20 }, tls: false });
  const template = (annotations: object = {}) => ({
    metadata: { annotations },
    spec: { restartPolicy: "Never", containers: [{ name: "c", image: "i" }] },
  });
  const create = (server: ApiServer, path: string, name: string, spec: object): Promise<ApiObject> =>
    waitFor(`${name} is created`, async () => {
      const { status, body } = await apiRequest<ApiObject>(server, `POST ${path}`, {
        body: { metadata: { name }, spec },
      });
      return status === 201 ? body : undefined;
    });
  const hasCondition = async (server: ApiServer, path: string, wanted: string): Promise<boolean> => {
    const { status } = await apiRequestOrThrow<ApiObject>(server, `GET ${path}`);
    const conditions = (status?.["conditions"] ?? []) as { type: string; status: string }[];
    return conditions.some(({ type, status }) => type === wanted && status === "True");
  };

  test("starts Jobs of CronJobs that are due at the shifted time", async () => {
    await using server = await start();
    // At a time that is always an hour or two away.
    const due = new Date(Date.now() + 1.5 * HOUR_MS).getUTCHours();
    const jobTemplate = { spec: { template: template() } };
    await create(server, "/apis/batch/v1/namespaces/default/cronjobs", "hourly", {
      schedule: `0 ${due} * * *`,
      jobTemplate,
    });
    server.faults.shiftClock(2 * HOUR_MS);
    const [job] = await waitFor("its Job exists", async () => {
      const { items = [] } = await apiRequestOrThrow<ApiObject>(server, `GET ${JOBS}`);
      return items.length > 0 && items;
    });
    assert.ok(Date.parse(createdAt(job)) > Date.now() + HOUR_MS);
  });

  test("expires TTLs of Jobs, active deadlines, and Events", async () => {
    await using server = await start();
    await create(server, JOBS, "done", { ttlSecondsAfterFinished: 3_600, template: template() });
    const long = template({ "simulate/outcome": "run" });
    await create(server, JOBS, "long", { activeDeadlineSeconds: 3_600, template: long });
    await waitFor("one is done", () => hasCondition(server, `${JOBS}/done`, "Complete"));
    const eventsOf = async (name: string): Promise<number> => {
      const path = `/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3D${name}`;
      return (await apiRequestOrThrow<ApiObject>(server, `GET ${path}`)).items?.length ?? 0;
    };
    await waitFor("there are Events", async () => (await eventsOf("done")) > 1);
    server.faults.shiftClock(1.5 * HOUR_MS);
    await waitFor("the deadline is over", () => hasCondition(server, `${JOBS}/long`, "Failed"));
    await waitFor(
      "the time to live is over",
      async () => (await apiRequest(server, `GET ${JOBS}/done`)).status === 404,
    );
    await waitFor("the Events are gone", async () => (await eventsOf("done")) === 0);
  });

  test("starts Pods after a shift into the past, with timestamps of the shifted time", async () => {
    await using server = await start();
    const before = Date.now();
    server.faults.shiftClock(-24 * HOUR_MS);
    await create(server, PODS, "p", { containers: [{ name: "c", image: "i" }] });
    await waitFor("the Pod is ready", () => hasCondition(server, `${PODS}/p`, "Ready"));
    const pod = await apiRequestOrThrow<ApiObject>(server, `GET ${PODS}/p`);
    const startTime = String(pod.status?.["startTime"]);
    for (const time of [createdAt(pod), startTime]) assert.ok(Date.parse(time) < before - 23 * HOUR_MS);
  });
});

function createdAt(object: ApiObject | undefined): string {
  return (object?.metadata as { creationTimestamp?: string } | undefined)?.creationTimestamp ?? "";
}
