//! Random bytes from the kernel, for keys and secrets.

use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

#[derive(Debug, thiserror::Error)]
#[error("the kernel gave no random bytes")]
pub struct RandomError(#[from] Errno);

pub fn bytes<const N: usize>() -> Result<[u8; N], RandomError> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        match getrandom(&mut bytes[filled..], GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_answers_are_never_the_same() {
        let (one, two) = (bytes::<32>().unwrap(), bytes::<32>().unwrap());
        assert_ne!(one, two);
        assert_ne!(one, [0; 32]);
    }
}
