# embed: for a program that contains a broker: publishing, clients, hooks, asyncio.
