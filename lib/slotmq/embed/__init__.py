# embed: for the program that the broker is part of: publishing, clients, hooks, asyncio.
