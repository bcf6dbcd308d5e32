import { startApiServer } from "#apiserver/server.js";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { apiRequest } from "../../support/api/api-request.js";
import { CONFIG_MAPS } from "../../support/api/api-fixtures.js";
import { assert, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";

interface AuditEvent {
  stage: string;
  requestURI: string;
  verb: string;
  user: { username?: string };
  impersonatedUser?: { username: string };
  objectRef?: { resource: string; namespace?: string };
  responseStatus: { code: number };
  annotations?: Record<string, string>;
}

suite("auditLog", (test) => {
  test("records user, impersonated user, decision, and status code of each request", async () => {
    await using folder = await createTemporaryFolder();
    const auditLog = join(folder.path, "audit.log");
    const server = await startApiServer({ tls: false, auditLog });
    await apiRequest(server, `GET ${CONFIG_MAPS}?limit=1`);
    await apiRequest(server, `GET ${CONFIG_MAPS}/none`, { headers: { "Impersonate-User": "jane" } });
    await apiRequest({ ...server, token: "nobody" }, "GET /version");
    await server.close();
    const events = (await readFile(auditLog, "utf8"))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as AuditEvent);
    const told = events.map(({ verb, requestURI, user, impersonatedUser, responseStatus, annotations }) => [
      `${verb} ${requestURI} ${responseStatus.code}`,
      user.username ?? "",
      impersonatedUser?.username ?? "",
      annotations?.["authorization.k8s.io/decision"] ?? "",
    ]);
    const admin = "gen-operator-admin";
    assert.equal(told, [
      [`list ${CONFIG_MAPS}?limit=1 200`, admin, "", "allow"],
      [`get ${CONFIG_MAPS}/none 403`, admin, "jane", "forbid"],
      ["get /version 401", "", "", ""],
    ]);
    assert.equal(events[0]?.objectRef, { resource: "configmaps", namespace: "default", apiVersion: "v1" });
    assert.is((await stat(auditLog)).mode & 0o777, 0o600);
  });

  test("fails startup if the file cannot be written", async () => {
    const refused = await startApiServer({ auditLog: "/none/audit.log" }).catch((error: Error) => error.message);
    assert.match(String(refused), "/none/audit.log");
  });
});
