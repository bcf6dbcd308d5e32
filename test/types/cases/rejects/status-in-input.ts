import { WebPage } from "../../../../fixtures/samples/webpage/src/generated/index.js";

export const page = WebPage.create({ metadata: { name: "x" }, spec: { html: "x" }, status: { ready: true } });
