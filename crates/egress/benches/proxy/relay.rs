//! A relay like the one in a box, which programs in there have to pass before they reach a proxy.

use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional_with_sizes};
use tokio::net::{TcpListener, TcpStream, UnixStream};

use crate::serving::{listen, serve_on_a_thread};
use crate::way::Door;

/// As much as the relay in a box moves at once.
const BUFFER: usize = 32 << 10;

/// Starts a relay and gives the door to it.
pub(crate) fn start(to: &Door) -> Door {
    let (listener, address) = listen();
    let to = to.clone();
    serve_on_a_thread(move || serve(listener, to));
    Door::Tcp(address)
}

async fn serve(listener: std::net::TcpListener, to: Door) {
    let listener = TcpListener::from_std(listener).expect("a listener");
    while let Ok((client, _)) = listener.accept().await {
        client.set_nodelay(true).expect("no delay");
        match &to {
            Door::Unix(path) => {
                let proxy = UnixStream::connect(path).await.expect("the proxy");
                tokio::spawn(join(client, proxy));
            }
            Door::Tcp(address) => {
                let proxy = TcpStream::connect(address).await.expect("the proxy");
                proxy.set_nodelay(true).expect("no delay");
                tokio::spawn(join(client, proxy));
            }
        }
    }
}

async fn join(mut client: TcpStream, mut proxy: impl AsyncRead + AsyncWrite + Unpin) {
    // A client disconnects once it has enough, possibly in the middle.
    let moved = copy_bidirectional_with_sizes(&mut client, &mut proxy, BUFFER, BUFFER).await;
    moved.unwrap_or_default();
}
