import { byId, listening, post, trying } from "./api.js";

byId("log-in").addEventListener("submit", (event) => {
  event.preventDefault();
  trying(async () => {
    const session = await post("/api/session", { secret: byId("secret").value.trim() });
    location.assign(`/${session.role}`);
  });
});
listening();
