/** The HTTP control beside which a live page is served: what groupcoord/control answers. */

const TOKEN = "groupcoord-token";

/** Raised where the control wants a token that it was not given. */
export class TokenNeeded extends Error {}

export class Control {
  token = sessionStorage.getItem(TOKEN) ?? "";

  constructor(private base: string) {}

  keepToken(token: string): void {
    this.token = token;
    sessionStorage.setItem(TOKEN, token);
  }

  /** The answer, if it is one; rejects with what the control says, or with TokenNeeded. */
  async ask(method: string, path: string, body?: unknown, more: RequestInit = {}): Promise<Response> {
    const headers: Record<string, string> = { ...(more.headers as Record<string, string>) };
    if (this.token) headers.Authorization = `Bearer ${this.token}`;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const init = { ...more, method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
    const answer = await fetch(this.base + path, init);
    if (answer.ok) return answer;
    if (answer.status === 401) throw new TokenNeeded(await problemOf(answer));
    throw new Error(await problemOf(answer));
  }

  async json<T>(method: string, path: string, body?: unknown): Promise<T> {
    return (await (await this.ask(method, path, body)).json()) as T;
  }

  async text(path: string): Promise<string> {
    return (await this.ask("GET", path)).text();
  }
}

interface Problem {
  title: string;
  detail?: string;
  errors?: { field: string; problem: string }[];
}

/** What a problem document (RFC 9457) says, in one line. */
async function problemOf(answer: Response): Promise<string> {
  try {
    const { detail, title, errors = [] } = (await answer.json()) as Problem;
    return [detail ?? title, ...errors.map(({ field, problem }) => `${field}: ${problem}`)].join("; ");
  } catch {
    return `${answer.status} ${answer.statusText}`;
  }
}
