// Starts `ensue lsp` and lets it speak with the editor. All that is known about the language is
// known by the server; colours before it has started come from the grammar in `syntaxes`.

import { commands, ExtensionContext, window, workspace } from "vscode";
import { LanguageClient, LanguageClientOptions, ServerOptions } from "vscode-languageclient/node";

let client: LanguageClient | undefined;

export async function activate(context: ExtensionContext): Promise<void> {
  context.subscriptions.push(
    commands.registerCommand("ensue.restart", async () => {
      await stop();
      await start();
    }),
    workspace.onDidChangeConfiguration(async (change) => {
      if (change.affectsConfiguration("ensue.path")) {
        await stop();
        await start();
      }
    }),
  );
  await start();
}

export async function deactivate(): Promise<void> {
  await stop();
}

async function start(): Promise<void> {
  const settings = workspace.getConfiguration("ensue");
  const command = settings.get<string>("path") || "ensue";
  const server: ServerOptions = { command, args: ["lsp"] };
  const options: LanguageClientOptions = {
    documentSelector: [{ language: "ensue" }],
    initializationOptions: {
      libraries: settings.get<string[][]>("libraries") ?? [],
      ontology: settings.get<string[]>("ontology") ?? [],
    },
    synchronize: {
      configurationSection: "ensue",
      fileEvents: workspace.createFileSystemWatcher("**/*.cor"),
    },
  };
  client = new LanguageClient("ensue", "Ensue", server, options);
  try {
    await client.start();
  } catch (error) {
    client = undefined;
    const advice = "Install it with `pip install 'ensue[lsp]'`, or name it in the setting `ensue.path`.";
    void window.showErrorMessage(`The command \`${command} lsp\` could not be started. ${advice} (${error})`);
  }
}

async function stop(): Promise<void> {
  const running = client;
  client = undefined;
  await running?.stop();
}
